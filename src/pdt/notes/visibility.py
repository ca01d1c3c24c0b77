"""Who may read whom: the notes conditions as one table.

Paper: §3.5, §7.1, Table 3.
"""

import torch
from torch import Tensor

from pdt.terms import NotesCondition


def visibility_table(condition: NotesCondition, lanes: int) -> Tensor:
    """`may_read_KK[reader, producer]`. An intervention that blocks a reader edits this table."""
    match condition:
        case NotesCondition.BUS:
            return torch.ones(lanes, lanes, dtype=torch.bool)
        case NotesCondition.SELF_ONLY:
            return torch.eye(lanes, dtype=torch.bool)
        case NotesCondition.NO_DYNAMIC:
            return torch.zeros(lanes, lanes, dtype=torch.bool)
