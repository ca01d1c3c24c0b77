"""OWNER, REFERENCE, ABSENT at the exact lane and block where evidence occurs. Paper: §4.3, §5.2."""

import re
from collections.abc import Sequence

import numpy as np

from pdt.records.align import LaneTokens
from pdt.records.arrays import PAD
from pdt.teacher.answer import PARAGRAPH_BREAK, Answer, FactRoles, TargetSection
from pdt.terms import FactRole

SENTENCE_END = re.compile(rf"(?<=[.!?]) |{PARAGRAPH_BREAK}")
BEGIN_TOKENS = 3
"""Of a sentence; by then it is decided which fact it tells."""
ROLE_INDEX = {role: index for index, role in enumerate(FactRole)}
"""The classifier's classes: OWNER 0, REFERENCE 1, ABSENT 2."""


def roles_in_fact_order(answer: Answer, facts: Sequence[str]) -> list[FactRoles]:
    by_fact = {roles.fact_id: roles for roles in answer.roles}
    return [by_fact[fact] for fact in facts]


def lane_roles(roles_F: Sequence[FactRoles], lanes: int) -> np.ndarray:
    """What each lane does with each fact anywhere in its section, `[K, F]`."""
    return np.array(
        [[ROLE_INDEX[roles.lanes[lane].role] for roles in roles_F] for lane in range(lanes)],
        dtype=np.int8,
    ).reshape(lanes, len(roles_F))


def block_roles(roles_F: Sequence[FactRoles], tokens_K: Sequence[LaneTokens]) -> np.ndarray:
    """What each block of each lane does with each fact, `[K, U, F]`; blocks past a lane's end pad.

    A quote over a block border is evidence in every block it touches.
    """
    blocks = max(lane.blocks for lane in tokens_K)
    role_KUF = np.full((len(tokens_K), blocks, len(roles_F)), PAD, dtype=np.int8)
    for lane, tokens in enumerate(tokens_K):
        role_KUF[lane, : tokens.blocks] = ROLE_INDEX[FactRole.ABSENT]
        for fact, roles in enumerate(roles_F):
            for quote in roles.lanes[lane].quotes:
                touched = tokens.blocks_of_quote(quote)
                role_KUF[lane, touched.start : touched.stop, fact] = ROLE_INDEX[
                    roles.lanes[lane].role
                ]
    return role_KUF


def fact_begins(
    roles_F: Sequence[FactRoles], sections: Sequence[TargetSection], tokens_K: Sequence[LaneTokens]
) -> np.ndarray:
    """Where a lane begins to tell a fact that it owns, `[K, T]`. Paper: §2.1 (ownership)."""
    begin_KT = np.zeros((len(tokens_K), max(len(lane.ids) for lane in tokens_K)), dtype=bool)
    for lane, (section, tokens) in enumerate(zip(sections, tokens_K, strict=True)):
        for roles in roles_F:
            if roles.lanes[lane].role is not FactRole.OWNER:
                continue
            for quote in roles.lanes[lane].quotes:
                sentence = re.split(SENTENCE_END, section.text[: quote.start])[-1]
                first = tokens.tokens_of(quote.start - len(sentence), quote.end).start
                begin_KT[lane, first : first + BEGIN_TOKENS] = True
    return begin_KT
