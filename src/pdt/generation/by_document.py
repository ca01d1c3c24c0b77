"""An edit that is another one in each document of a batch.

Paper: §7.1, §7.3.
"""

from dataclasses import dataclass, replace

import torch

from pdt.errors import UsageError
from pdt.generation.interventions import Decode, Intervention
from pdt.model.planner import PlanSet
from pdt.notes.bus import NoteBlock, NotesBus


@dataclass(frozen=True)
class ByDocument(Intervention):
    """In each document of a batch an edit of its own, of its plans or of its notes."""

    edits_B: tuple[Intervention, ...] = ()

    def edit_plans(self, plans: PlanSet) -> PlanSet:
        self._check(len(plans.nodes_BKNP))
        rows = [edit.edit_plans(plans.document(n)) for n, edit in enumerate(self.edits_B)]
        return replace(
            plans,
            nodes_BKNP=torch.cat([row.nodes_BKNP for row in rows]),
            valid_BKN=torch.cat([row.valid_BKN for row in rows]),
            scores_BK=torch.cat([row.scores_BK for row in rows]),
        )

    def edit_bus(self, bus: NotesBus, decode: Decode) -> NotesBus:
        if not bus.blocks:
            return bus
        self._check(len(bus.blocks[0].codes_BKM))
        rows = [
            edit.edit_bus(
                replace(bus, blocks=tuple(note.document(n) for note in bus.blocks)), decode
            )
            for n, edit in enumerate(self.edits_B)
        ]
        return replace(
            bus,
            blocks=tuple(
                NoteBlock(
                    torch.cat([note.codes_BKM for note in notes]),
                    torch.cat([note.vectors_BKE for note in notes]),
                    torch.cat([note.published_BK for note in notes]),
                )
                for notes in zip(*(row.blocks for row in rows), strict=True)
            ),
        )

    def _check(self, documents: int) -> None:
        if len(self.edits_B) != documents:
            raise UsageError(f"{len(self.edits_B)} edits are given for {documents} documents.")

    def lanes(self) -> tuple[int, ...]:
        return tuple(lane for edit in self.edits_B for lane in edit.lanes())

    def nodes(self) -> tuple[int, ...]:
        return tuple(node for edit in self.edits_B for node in edit.nodes())
