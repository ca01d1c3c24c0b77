"""Signs that a text is none that the model can write about: its length, the plan, what was written.

Only for models that were taught by sentences of the source: what others write is not borne out word
by word.
"""

from collections.abc import Sequence

from pdt.config import PdtConfig
from pdt.generation.events import DocumentResult, Event, FinishReason, PlanReady
from pdt.sentences.support import support_of
from pdt.terms import TeacherKind

LEAST_SUPPORT, MOST_REPETITION = 0.9, 0.1
"""Of the sentences of one document."""


def signs_out_of_range(
    config: PdtConfig,
    source: str,
    source_tokens: int,
    result: DocumentResult,
    events: Sequence[Event] = (),
) -> list[str]:
    """Every sign, in words; none where the model is at home, or where nobody can tell."""
    if config.teacher.kind is not TeacherKind.EXTRACTIVE:
        return []
    limits = config.records.limits
    signs = []
    if not limits.source_tokens.holds(source_tokens):
        signs.append(f"the source has {source_tokens} tokens, it learned {limits.source_tokens}")
    for event in events:
        if isinstance(event, PlanReady):
            counts = [len(nodes) for nodes in event.valid_nodes]
            if not all(map(limits.plan_nodes.holds, counts)):
                signs.append(f"its plans have {counts} nodes, it learned {limits.plan_nodes}")
    found = support_of([section.text for section in result.sections], source)
    if found.share < LEAST_SUPPORT:
        signs.append(
            f"the source bears out {found.borne_out} of {found.sentences} written sentences"
        )
    if found.repetition > MOST_REPETITION:
        signs.append(f"{found.repeated} of {found.sentences} sentences were said before")
    cut = sum(section.reason is FinishReason.LENGTH for section in result.sections)
    if cut:
        signs.append(f"{cut} of {len(result.sections)} lanes found no end")
    return signs
