"""Free generation over held-out documents, one condition at a time, every text kept.

Paper: §7.1, §7.2.
"""

import random
from collections.abc import Sequence

from pdt.evaluation.generate.batches import HeldOutBatch
from pdt.evaluation.generate.plans import AddressedPlans
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.written import Written, WrittenLane
from pdt.evaluation.protocol.conditions import Condition
from pdt.generation.events import Done
from pdt.generation.lane import Continuations
from pdt.generation.ledger import Ledger
from pdt.generation.loop import start
from pdt.generation.settings import GenerationSettings
from pdt.model.pdt import ParallelDecoder
from pdt.model.prompt import Prompt
from pdt.tokenizer import StudentTokenizer


def write_batch(
    model: ParallelDecoder,
    tokenizer: StudentTokenizer,
    batch: HeldOutBatch,
    condition: Condition,
    addressed: AddressedPlans,
    settings: GenerationSettings,
    *,
    read: Prompt | None = None,
    words: Sequence[dict[str, str]] | None = None,
) -> tuple[list[Written], Ledger]:
    """Every document of the batch; `words` names, by choice id, what owners must coin."""
    before = addressed.lane_of_plan_BK.tolist()
    generation = start(
        model,
        _prompts(batch),
        settings,
        tokenizer=tokenizer,
        interventions=condition.edits_on(batch.documents, before),
        plans=addressed.plans,
        read=read,
        continuations=None if words is None else _continuations(batch, before, words),
        forced=_sibling_openings(batch, before) if condition.sibling_opening else None,
    )
    *_, done = generation.events()
    assert isinstance(done, Done)
    written = []
    for place, (document, result) in enumerate(zip(batch.documents, done.documents, strict=True)):
        by_lane = {section.lane: section for section in result.sections}
        written.append(
            Written(
                condition=condition.name,
                record_id=document.record_id,
                lane_of_plan=tuple(condition.lane_after(lane) for lane in before[place]),
                unmoved_lane_of_plan=tuple(before[place]),
                lane_at_position=tuple(section.lane for section in result.sections),
                lanes=tuple(
                    WrittenLane(
                        text=by_lane[lane].text,
                        tokens=by_lane[lane].tokens,
                        finish=by_lane[lane].reason,
                        block_ends=block_ends(
                            by_lane[lane].tokens, tokenizer, model.config.lanes.block_tokens
                        ),
                    )
                    for lane in sorted(by_lane)
                ),
                forced=None if words is None else words[place],
            )
        )
    return written, done.ledger


def draw_words(documents: Sequence[HeldOutDocument], seed: int) -> list[dict[str, str]]:
    """For each coined choice one of its alternatives, uniformly; a function of seed and ids."""
    drawn = []
    for document in documents:
        words = {}
        for choice in document.choices:
            name = f"pdt coined {seed} {document.record_id} {choice.choice_id}"
            words[choice.choice_id] = random.Random(name).choice(choice.alternatives)
        drawn.append(words)
    return drawn


def block_ends(
    tokens: Sequence[int], tokenizer: StudentTokenizer, block_tokens: int
) -> tuple[int, ...]:
    """How many characters stand there at the end of each whole block."""
    ends = range(block_tokens, len(tokens) + 1, block_tokens)
    return tuple(len(tokenizer.prose(tokens[:end])) for end in ends)


def _sibling_openings(
    batch: HeldOutBatch, lane_of_plan: Sequence[Sequence[int]]
) -> list[list[Sequence[int]]]:
    """By document and physical lane, the first sentence of the next teacher lane's section."""
    forced: list[list[Sequence[int]]] = []
    for document, lanes in zip(batch.documents, lane_of_plan, strict=True):
        row: list[Sequence[int]] = [()] * len(lanes)
        for plan, lane in enumerate(lanes):
            row[lane] = document.sibling_opening(plan).tokens
        forced.append(row)
    return forced


def _prompts(batch: HeldOutBatch) -> list[list[int]]:
    return [row[row >= 0].tolist() for row in batch.records.prompt_tokens_BS]


def _continuations(
    batch: HeldOutBatch,
    lane_of_plan: Sequence[Sequence[int]],
    words: Sequence[dict[str, str]],
) -> list[list[Continuations]]:
    """Whenever an owner lane has written the cue, the drawn word comes next."""
    table: list[list[Continuations]] = []
    for document, lanes, drawn in zip(batch.documents, lane_of_plan, words, strict=True):
        row: list[dict[tuple[int, ...], Sequence[int]]] = [{} for _ in lanes]
        for choice in document.choices:
            word = choice.alternatives.index(drawn[choice.choice_id])
            row[lanes[choice.owner_lane]][choice.cue_tokens] = choice.alternative_tokens[word]
        table.append(list(row))
    return table
