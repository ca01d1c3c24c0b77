"""A first set of codes taken from what the writer writes, so that notes are told apart at once.

Codes drawn far from every written vector leave most of a codebook dead, and the living few draw all
notes together before the bus has carried anything (docs/log.md).

Paper: §5.2 leaves the start of the codebooks open.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from pdt.errors import UsageError
from pdt.model.oracle import oracle_plans
from pdt.model.pdt import ParallelDecoder
from pdt.records.batch import RecordShards
from pdt.training.rollout import roll_out

BATCH = 8
MOST_DOCUMENTS = 96
"""Of short documents hundreds would be rolled out for twice as many notes as codes; fewer do."""

Telling = Callable[[str], None]


def _nobody(text: str) -> None:
    """Where nobody listens."""


@torch.no_grad()
def take_codes(
    model: ParallelDecoder, shards: RecordShards, seed: int, *, telling: Telling = _nobody
) -> None:
    """Codes from the notes of the first documents; `telling` hears how far it is."""
    C = model.note_writer.vq.codebooks.shape[1]
    written = _written(model, shards, seed, enough=C, telling=telling)
    if len(written) < C:
        raise UsageError(
            f"{shards.directory} publishes {len(written)} notes, and a codebook has {C} codes.\n"
            "Compile more documents, or set notes.codebook_start=drawn."
        )
    codes_from(model, written, seed)


@torch.no_grad()
def codes_from(model: ParallelDecoder, written: Tensor, seed: int) -> None:
    """Every code becomes a subvector of a different row of `written`, which has enough rows."""
    books_MCe = model.note_writer.vq.codebooks
    M, C, _ = books_MCe.shape
    generator = torch.Generator().manual_seed(seed)
    for m, book in enumerate(written.unflatten(-1, (M, -1)).unbind(1)):
        books_MCe[m] = book[torch.randperm(len(book), generator=generator)[:C]]


def _written(
    model: ParallelDecoder, shards: RecordShards, seed: int, *, enough: int, telling: Telling
) -> Tensor:
    """What the lanes write with the teacher's plans, [notes, E].

    Twice `enough`, or at least `enough` once many documents were read, or all there is.
    """
    found: list[Tensor] = []
    for number, batch in enumerate(shards.batches(BATCH, seed=seed), start=1):
        lengths_B = batch.prompt_valid_BS.sum(1)
        prompt = model.read_prompt(batch.prompt_tokens_BS.clamp(min=0), lengths_B)
        frontier = model.open_lanes(prompt, oracle_plans(model, prompt, batch))
        for note in roll_out(model, frontier, batch.section_tokens_BKT).bus.blocks:
            assert note.written_BKE is not None
            found.append(note.written_BKE[note.published_BK])
        notes = sum(map(len, found))
        telling(f"the first codes: {notes} of {2 * enough} notes, {number * BATCH} documents")
        if notes >= 2 * enough or (notes >= enough and number * BATCH >= MOST_DOCUMENTS):
            break
    return torch.cat(found) if found else torch.empty(0, model.config.reads.memory_width)
