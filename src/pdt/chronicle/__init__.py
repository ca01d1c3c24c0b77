"""Chronicle, the procedural corpus: fictional history whose every fact is known exactly.

From a seed it draws a world (`world`), writes that world as a source article (`article`) in the
same bundle form as a Wikipedia revision (`markup`), and teaches it (`document`): since the world
state is known, facts, plans and labels are exact, and so is the reading of what lanes wrote of them
(`claims`). Its output goes through the same schemas, checks and compiler as any other teacher's.
Everything here is fiction; no person, place or event is meant.

Paper: §4.1, §4.2.
"""

from pdt.chronicle.document import Chronicle, ChronicleDocument

__all__ = ["Chronicle", "ChronicleDocument"]
