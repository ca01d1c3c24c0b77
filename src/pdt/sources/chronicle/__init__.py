"""Chronicle, the procedural corpus: fictional history whose every fact is known exactly.

From a seed it draws a world (`world`), and writes that world as a source article (`article`) in the
same bundle form as a Wikipedia revision (`markup`). `pdt.teacher.chronicle` then plays the teacher.
Everything here is fiction; no person, place or event is meant.

Paper: §4.1.
"""
