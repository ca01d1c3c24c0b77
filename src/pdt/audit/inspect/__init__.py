"""People inspect records on pages: accept, reject with a reason, next.

Paper: §4.3 (each manually inspected).
"""
