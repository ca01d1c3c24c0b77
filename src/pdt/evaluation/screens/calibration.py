"""The NLI threshold: calibrated once on disjoint teacher prose, stored, then frozen.

True claims are facts in their owner's section; false ones are hard negatives in the same section
and facts in a section that leaves them out. A calibration names its documents, and an evaluation
that shares one with it (by id, by family or by text) is refused.

Paper: §7.2.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from pdt.config.node import Share
from pdt.contract import Contract, Id, Line, Sha256, parse_contract
from pdt.errors import ContractBroken, UsageError
from pdt.evaluation.lines.document import HeldOutDocument
from pdt.provenance import atomic_path, read_utf8
from pdt.terms import Split

Scores = Callable[[Sequence[str], Sequence[str]], list[list[float]]]
"""From claims and lanes to a score by claim and lane."""


class CalibrationDocument(Contract):
    """A document whose teacher prose was used."""

    record_id: Id
    family_key: Id
    text_sha256: Sha256


class Calibration(Contract):
    """A frozen threshold and where it comes from."""

    schema_version: Literal["pdt.calibration/1"] = "pdt.calibration/1"
    encoder: Line
    """The cross-encoder's name and digest or commit."""
    threshold: Share
    finds: Share
    """True claims at or above the threshold."""
    refuses_hard_negatives: Share
    refuses_absent: Share
    """False claims below it."""
    documents: tuple[CalibrationDocument, ...]


def calibrate(
    encoder: str, scores: Scores, prose: Sequence[tuple[HeldOutDocument, Sequence[str]]]
) -> Calibration:
    """The threshold with the best balanced accuracy on teacher sections.

    Evaluation text is refused: a document of the test split cannot be calibrated on.
    """
    held = [document.record_id for document, _ in prose if document.split is Split.TEST]
    if held:
        raise ContractBroken(
            f"{held[0]} and {len(held) - 1} more are of the test split: evaluation text.",
            "The threshold is calibrated on disjoint teacher prose (§7.2): train or validation.",
        )
    true, hard, absent = [], [], []
    for document, lanes in prose:
        claims = [fact.statement for fact in document.facts]
        negatives = [fact.hard_negative for fact in document.facts]
        found = scores([*claims, *negatives], lanes)
        for number, fact in enumerate(document.facts):
            owner = fact.owner_lane
            true.append(found[number][owner])
            hard.append(found[len(claims) + number][owner])
            silent = {owner, *fact.reference_lanes, *fact.permitted_lanes}
            absent += [s for lane, s in enumerate(found[number]) if lane not in silent]
    if not true or not absent:
        raise UsageError("There is nothing to calibrate on. Give records with facts and sections.")
    threshold, (finds, no_hard, no_absent) = _best_threshold(true, hard, absent)
    return Calibration(
        encoder=encoder,
        threshold=threshold,
        finds=finds,
        refuses_hard_negatives=no_hard,
        refuses_absent=no_absent,
        documents=tuple(
            CalibrationDocument(
                record_id=document.record_id,
                family_key=document.family_key,
                text_sha256=document.text_sha256,
            )
            for document, _ in prose
        ),
    )


def _best_threshold(
    true: Sequence[float], hard: Sequence[float], absent: Sequence[float]
) -> tuple[float, tuple[float, float, float]]:
    """Both kinds of false claims weigh alike, and together as much as the true ones."""
    every = np.unique(np.array([*true, *hard, *absent]))
    candidates = np.unique(np.concatenate([[0.0], (every[1:] + every[:-1]) / 2, [1.0]]))
    finds = (np.array(true)[:, None] >= candidates).mean(0)
    no_hard = (np.array(hard)[:, None] < candidates).mean(0)
    no_absent = (np.array(absent)[:, None] < candidates).mean(0)
    best = int((finds + (no_hard + no_absent) / 2).argmax())
    return float(candidates[best]), (
        float(finds[best]),
        float(no_hard[best]),
        float(no_absent[best]),
    )


def refuse_frozen(path: Path) -> None:
    """A calibration that exists is never written over."""
    if path.exists():
        raise UsageError(
            f"{path} exists. A threshold is calibrated once and then frozen (§7.2).\n"
            "Use it as it is, or name another file for another cross-encoder."
        )


def freeze(calibration: Calibration, path: Path) -> None:
    """Store it, once."""
    refuse_frozen(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as partial:
        partial.write_text(calibration.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_calibration(path: Path) -> Calibration:
    if not path.is_file():
        raise UsageError(f"{path} does not exist. `pdt eval calibrate` makes a calibration.")
    remedy = "Take the file again from its source."
    text = read_utf8(path, remedy=remedy)
    return parse_contract(Calibration, text, where=str(path), remedy=remedy)


def check_disjoint(calibration: Calibration, evaluated: Sequence[HeldOutDocument]) -> None:
    """Refuse an evaluation on any document that the threshold has seen."""
    for name in ("record_id", "family_key", "text_sha256"):
        seen = {getattr(document, name) for document in calibration.documents}
        shared = sorted({getattr(document, name) for document in evaluated} & seen)
        if shared:
            raise ContractBroken(
                f"{len(shared)} documents to evaluate were calibrated on ({name} {shared[0]}).",
                "The threshold is frozen before it sees evaluation text (§7.2). Evaluate on other "
                "documents, or use the calibration of a disjoint corpus.",
            )
