"""The teacher of Chronicle: it knows the world state, so its facts, plans and labels are exact.

Its output goes through the same schemas, checks and compiler as any other teacher's.

Paper: §4.2.
"""

from pdt.teacher.chronicle.document import Chronicle, ChronicleDocument

__all__ = ["Chronicle", "ChronicleDocument"]
