"""A held-out document as an alteration left it: lines that are stored.

Paper: §7.1.
"""

from pdt.contract import Contract, Id
from pdt.evaluation.lines.document import HeldOutDocument


class Altered(Contract):
    """A line of altered.jsonl."""

    condition: Id
    document: HeldOutDocument
