"""The whole experiment at laptop size: corpus, trunk, stages, controls and verdict.

Paper: §6, §7.
"""
