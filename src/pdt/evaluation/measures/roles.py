"""Whether the planner's queries have fixed roles: what a lane's number tells of its subject.

A plan set is unordered, so nothing asks lane 0 for the time before an event. A planner may learn to
put it there all the same; then its lanes are three specialists and not a set.

Paper: §3.2 (an unordered set).
"""

from itertools import permutations

import numpy as np

from pdt.chronicle.claims import read_claim
from pdt.errors import UsageError
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.written import Written
from pdt.evaluation.measures.evidence import Evidence, Measured
from pdt.evaluation.protocol.conditions import LEARNED

AXES = ("phase", "theme")
"""Divisions whose parts mean the same in every document."""


def role_measures(evidence: Evidence) -> Measured:
    """Bits that the lane tells of its part, less what as many random placements would tell."""
    tables: dict[str, np.ndarray] = {}
    for name, document in evidence.documents.items():
        written = evidence.texts.get((LEARNED.name, name))
        if written is not None and (table := _table(document, written)) is not None:
            tables[name] = table
    if len(tables) < 2:
        return {}
    names = sorted(tables)
    stacked = np.stack([tables[name] for name in names])  # [n, A, part, lane]
    flat = stacked.reshape(len(names), -1)
    columns = [dict(zip(names, flat[:, cell], strict=True)) for cell in range(flat.shape[1])]
    shape = stacked.shape[1:]
    chance = _by_chance(stacked)

    def bits(*means: np.ndarray) -> np.ndarray:
        cells = np.stack(np.broadcast_arrays(*means), axis=-1)
        return _information(cells.reshape(*cells.shape[:-1], *shape)) - chance

    return {"planner.role_bits": evidence.boot.statistic(columns, bits)}


def _table(document: HeldOutDocument, written: Written) -> np.ndarray | None:
    """By axis, part and physical lane: 1 where that part's outline stands."""
    if document.division not in AXES:
        return None
    lanes = len(written.lane_of_plan)
    table = np.zeros((len(AXES), lanes, lanes))
    try:
        for fact in document.facts:
            part = int(
                getattr(read_claim(document.category, fact.statement).deed, document.division)
            )
            table[AXES.index(document.division), part, written.lane_of_plan[fact.owner_lane]] = 1
    except UsageError:
        return None  # not Chronicle: nobody knows what a part is about
    return table


def _information(cells: np.ndarray) -> np.ndarray:
    """Bits that part and lane share, given the axis; `cells` are [..., A, part, lane]."""
    total = cells.sum(axis=(-3, -2, -1), keepdims=True)
    p = cells / total
    axis = p.sum(axis=(-2, -1), keepdims=True)
    expected = np.divide(
        p.sum(axis=-1, keepdims=True) * p.sum(axis=-2, keepdims=True),
        axis,
        out=np.zeros_like(p),
        where=axis > 0,
    )
    terms = np.zeros_like(p)
    there = p > 0
    terms[there] = p[there] * np.log2(p[there] / np.broadcast_to(expected, p.shape)[there])
    return terms.sum(axis=(-3, -2, -1))


def _by_chance(stacked: np.ndarray, draws: int = 200) -> float:
    """The same of lanes that are permuted at random in every document: what few documents feign."""
    orders = np.array(list(permutations(range(stacked.shape[-1]))))
    stream = np.random.RandomState(0)
    found = []
    for _ in range(draws):
        order = orders[stream.randint(len(orders), size=len(stacked))]  # [n, lane]
        permuted = np.take_along_axis(stacked, order[:, None, None, :], axis=-1)
        found.append(float(_information(permuted.sum(axis=0))))
    return sum(found) / len(found)
