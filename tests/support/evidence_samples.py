"""One document of four facts, what lanes might write of it, and how a screen might judge that."""

from pdt.evaluation.lines.document import (
    HeldOutChoice,
    HeldOutDocument,
    HeldOutFact,
    HeldOutOpening,
    HeldOutReference,
    draw_transplant,
)
from pdt.evaluation.lines.judgments import LaneFacts
from pdt.evaluation.lines.written import Written, WrittenLane
from pdt.terms import Split

IDENTITY = (0, 1, 2)
CHOICE = HeldOutChoice(
    dependency_id="d1",
    choice_id="c1",
    text="Lion",
    alternatives=("Wolf", "Lion", "Bear", "Moon"),
    entropy_bits=2,
    owner_lane=0,
    receiver_lane=1,
    cue="the Song of the",
    cue_tokens=(7, 8),
    alternative_tokens=((20,), (21,), (22,), (23,)),
    owner_token=2,
    receiver_token=5,
)


REFERENCE = HeldOutReference(
    dependency_id="d9", fact_id="f1", owner_lane=0, receiver_lane=2, receiver_tokens=(1, 2)
)
"""Lane 2 speaks of f1, which lane 0 owns."""


def document(
    name: str = "r0",
    *,
    choices: tuple[HeldOutChoice, ...] = (),
    references: tuple[HeldOutReference, ...] = (),
    division: str | None = None,
) -> HeldOutDocument:
    """Four facts: lane 0 owns two in two nodes, lanes 1 and 2 one each; lane 2 may mention f1."""

    def fact(number: int, lane: int, node: int, permitted: tuple[int, ...] = ()) -> HeldOutFact:
        return HeldOutFact(
            id=f"f{number}",
            statement=f"Fact {number}.",
            hard_negative=f"Not fact {number}.",
            owner_lane=lane,
            owner_node=node,
            reference_lanes=permitted,
            permitted_lanes=permitted,
        )

    facts = (fact(1, 0, 0, (2,)), fact(2, 0, 1), fact(3, 1, 0), fact(4, 2, 0))
    return HeldOutDocument(
        record_id=name,
        split=Split.TEST,
        family_key=name,
        category="sieges",
        teacher="hand",
        text_sha256="0" * 64,
        facts=facts,
        transplant=draw_transplant(name, facts),
        section_lengths=(4, 4, 4),
        dependency_tokens=((), (2, 3), ()),
        dependency_owner=0,
        attacked_tokens=((), (2,), ()),
        choices=choices,
        references=references,
        dependencies=len(choices) + len(references),
        division=division,
        openings=tuple(HeldOutOpening(text=f"It is {k}.", tokens=(k,)) for k in range(3)),
    )


def judged(
    stated: list[list[int]],
    mentioned: list[list[int]] | None = None,
    false: list[list[int]] | None = None,
    places: list[list[int]] | None = None,
) -> LaneFacts:
    nothing = [[0] * 4 for _ in range(3)]
    return LaneFacts.model_validate(
        {
            "stated_KF": stated,
            "mentioned_KF": mentioned or stated,
            "hard_negative_KF": false or nothing,
            "place_KF": places,
        }
    )


PERFECT = [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def written(
    condition: str,
    name: str = "r0",
    *,
    before: tuple[int, ...] = IDENTITY,
    after: tuple[int, ...] | None = None,
    tokens: tuple[tuple[int, ...], ...] = ((1,), (1,), (1,)),
    texts: tuple[str, ...] = ("", "", ""),
    block_ends: tuple[int, ...] = (),
) -> Written:
    return Written(
        condition=condition,
        record_id=name,
        lane_of_plan=after or before,
        unmoved_lane_of_plan=before,
        lane_at_position=IDENTITY,
        lanes=tuple(
            WrittenLane(text=text, tokens=row, finish="length", block_ends=block_ends)
            for text, row in zip(texts, tokens, strict=True)
        ),
    )
