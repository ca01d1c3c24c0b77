"""From raw bundles to training records in one command, resumable at every step.

Paper: §4.
"""
