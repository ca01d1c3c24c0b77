"""Measures of the notes: Eq. 10, bits of coined choices, agreement in free generation.

Paper: §7.3, Eq. 10, Table 3.
"""

from collections.abc import Callable, Iterable, Mapping

from pdt.evaluation.lines.document import HeldOutDocument
from pdt.evaluation.lines.likelihoods import Likelihoods
from pdt.evaluation.measures import bits
from pdt.evaluation.measures.bootstrap import Values
from pdt.evaluation.measures.communication import mean_nll
from pdt.evaluation.measures.evidence import Evidence, Measured
from pdt.evaluation.protocol.conditions import (
    BUS,
    MUTATED,
    NO_DYNAMIC,
    SELF_ONLY,
    SELF_ONLY_FLOOR,
    SENDERS,
)

Documents = Mapping[str, HeldOutDocument]


def delta_measures(evidence: Evidence) -> Measured:
    """Eq. 10 for every condition against the intact bus, and bus against self-only."""
    documents, boot = evidence.documents, evidence.boot
    rows = _by_condition(evidence.raw.likelihoods)

    def nll(condition: str, judged: Documents, *, dependency: bool) -> dict[str, float]:
        return _measured(
            rows.get(condition, {}), lambda d, row: mean_nll(d, row, dependency=dependency), judged
        )

    measures: Measured = {}
    for condition in rows:
        judged = {n: _judged_under(condition, d) for n, d in documents.items()}
        at = nll(condition, judged, dependency=True)
        elsewhere = nll(condition, documents, dependency=False)
        measures[f"nll.{condition}.dependency"] = boot.mean(at)
        measures[f"nll.{condition}.other"] = boot.mean(elsewhere)
        if condition in (BUS.name, SELF_ONLY.name, SELF_ONLY_FLOOR.name):
            continue
        at = minus(at, nll(BUS.name, judged, dependency=True))
        elsewhere = minus(elsewhere, nll(BUS.name, documents, dependency=False))
        measures[f"delta.{condition}.dependency"] = boot.mean(at)
        measures[f"delta.{condition}.other"] = boot.mean(elsewhere)
        measures[f"delta.{condition}.selectivity"] = boot.difference(at, elsewhere)
    for kind in ("dependency", "other"):
        ours, theirs = (
            nll(condition.name, documents, dependency=kind == "dependency")
            for condition in (BUS, SELF_ONLY)
        )
        measures[f"sibling.{kind}_nll"] = boot.difference(theirs, ours)
    return measures


def bit_measures(evidence: Evidence) -> Measured:
    """h, what was received of it, and its share, for every condition."""
    documents, boot = evidence.documents, evidence.boot
    rows = _by_condition(evidence.raw.likelihoods)
    if not any(d.choices for d in documents.values()) or not rows:
        return {}
    measures: Measured = {"bits.h": boot.mean(_entropy(documents))}
    for condition in rows:
        judged = {n: _judged_under(condition, d) for n, d in documents.items()}
        own = condition in (SELF_ONLY.name, SELF_ONLY_FLOOR.name)
        h = _entropy(judged)
        values, floor = (
            _measured(rows.get(name, {}), bits.cross_entropy, judged)
            for name in (condition, (SELF_ONLY_FLOOR if own else NO_DYNAMIC).name)
        )
        measures[f"bits.{condition}.cross_entropy"] = boot.mean(values)
        measures[f"bits.{condition}.received"] = boot.difference(h, values)
        measures[f"bits.{condition}.share"] = boot.ratio(minus(h, values), h)
        measures[f"bits.{condition}.over_floor"] = boot.difference(floor, values)
    return measures


def agreement_measures(evidence: Evidence) -> Measured:
    """Owner and receiver in free generation, with the owner's word drawn uniformly."""
    settings, boot = evidence.settings, evidence.boot
    rates: dict[str, dict[str, dict[str, float]]] = {}
    for written in evidence.raw.coined:
        document = _judged_under(written.condition, evidence.documents[written.record_id])
        found = [
            bits.agreement(
                choice,
                written,
                block_tokens=settings.block_tokens,
                window_blocks=settings.window_blocks,
                delay_blocks=settings.note_delay_blocks,
            )
            for choice in document.choices
        ]
        both = [a for a in found if a.both]
        timely = [a for a in both if a.in_time]
        shares = {
            "both": (len(both), len(found)),
            "in_time": (len(timely), len(both)),
            "agree": (sum(a.agree for a in timely), len(timely)),
            "agree_whenever": (sum(a.agree for a in both), len(both)),
            "chance": (sum(1 / a.alternatives for a in timely), len(timely)),
        }
        for name, (part, whole) in shares.items():
            if whole:
                of_condition = rates.setdefault(written.condition, {})
                of_condition.setdefault(name, {})[written.record_id] = part / whole
    measures = {
        f"agreement.{condition}.{name}": boot.mean(values)
        for condition, of_condition in rates.items()
        for name, values in of_condition.items()
    }
    if rates:
        ours, theirs = (rates.get(name, {}).get("agree", {}) for name in ("bus", "self_only"))
        measures["sibling.agreement"] = boot.difference(ours, theirs)
        ours, theirs = (rates.get(name, {}).get("in_time", {}) for name in ("bus", "self_only"))
        measures["sibling.in_time"] = boot.difference(ours, theirs)
    return measures


def minus(first: Values, second: Values) -> dict[str, float]:
    """Document by document, where both are there."""
    return {name: first[name] - second[name] for name in first.keys() & second.keys()}


def _judged_under(condition: str, document: HeldOutDocument) -> HeldOutDocument:
    """An attack on one producer is judged where that producer is needed, on nothing else."""
    attacks = (MUTATED.name, SENDERS.name)
    return document.under_attack() if condition in attacks else document


def _entropy(documents: Documents) -> dict[str, float]:
    return {n: value for n, d in documents.items() if (value := bits.entropy(d)) is not None}


def _by_condition(rows: Iterable[Likelihoods]) -> dict[str, dict[str, Likelihoods]]:
    found: dict[str, dict[str, Likelihoods]] = {}
    for row in rows:
        found.setdefault(row.condition, {})[row.record_id] = row
    return found


def _measured(
    rows: Mapping[str, Likelihoods],
    measure: Callable[[HeldOutDocument, Likelihoods], float | None],
    documents: Documents,
) -> dict[str, float]:
    """The documents in which there is something to measure."""
    found = {name: measure(documents[name], row) for name, row in rows.items()}
    return {name: value for name, value in found.items() if value is not None}
