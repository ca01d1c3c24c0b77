"""Measures of the notes: Eq. 10, bits of coined choices, agreement in free generation.

Paper: §7.3, Eq. 10, Table 3.
"""

from collections.abc import Callable, Iterable, Mapping

from pdt.evaluation import bits
from pdt.evaluation.bootstrap import Bootstrap, Measure, Values
from pdt.evaluation.communication import Likelihoods, mean_nll
from pdt.evaluation.held_out import HeldOutDocument
from pdt.evaluation.results import EvaluationSettings, Raw


def delta_measures(
    raw: Raw, documents: Mapping[str, HeldOutDocument], boot: Bootstrap
) -> dict[str, Measure | None]:
    """Eq. 10 for every condition against the intact bus, and bus against self-only."""
    dependency, other = (
        _by_condition(
            raw.likelihoods,
            lambda row, kind=kind: mean_nll(documents[row.record_id], row, dependency=kind),  # type: ignore[misc]
        )
        for kind in (True, False)
    )
    measures: dict[str, Measure | None] = {}
    for condition in dependency.keys() | other.keys():
        measures[f"nll.{condition}.dependency"] = boot.mean(dependency.get(condition, {}))
        measures[f"nll.{condition}.other"] = boot.mean(other.get(condition, {}))
        if condition in ("bus", "self_only", "self_only_no_dynamic"):
            continue
        at = minus(dependency.get(condition, {}), dependency.get("bus", {}))
        elsewhere = minus(other.get(condition, {}), other.get("bus", {}))
        measures[f"delta.{condition}.dependency"] = boot.mean(at)
        measures[f"delta.{condition}.other"] = boot.mean(elsewhere)
        measures[f"delta.{condition}.selectivity"] = boot.difference(at, elsewhere)
    for kind, values in (("dependency", dependency), ("other", other)):
        measures[f"sibling.{kind}_nll"] = boot.difference(
            values.get("self_only", {}), values.get("bus", {})
        )
    return measures


def bit_measures(
    raw: Raw, documents: Mapping[str, HeldOutDocument], boot: Bootstrap
) -> dict[str, Measure | None]:
    """h, what was received of it, and its share, for every condition."""
    h = {name: value for name, d in documents.items() if (value := bits.entropy(d)) is not None}
    if not h or not raw.likelihoods:
        return {}
    entropy = _by_condition(
        raw.likelihoods, lambda row: bits.cross_entropy(documents[row.record_id], row)
    )
    measures: dict[str, Measure | None] = {"bits.h": boot.mean(h)}
    for condition, values in entropy.items():
        floor = entropy.get(
            "self_only_no_dynamic" if condition.startswith("self_only") else "no_dynamic", {}
        )
        measures[f"bits.{condition}.cross_entropy"] = boot.mean(values)
        measures[f"bits.{condition}.received"] = boot.difference(h, values)
        measures[f"bits.{condition}.share"] = boot.ratio(minus(h, values), h)
        measures[f"bits.{condition}.over_floor"] = boot.difference(floor, values)
    return measures


def agreement_measures(
    raw: Raw,
    settings: EvaluationSettings,
    documents: Mapping[str, HeldOutDocument],
    boot: Bootstrap,
) -> dict[str, Measure | None]:
    """Owner and receiver in free generation, with the owner's word drawn uniformly."""
    rates: dict[str, dict[str, dict[str, float]]] = {}
    for written in raw.coined:
        choices = documents[written.record_id].choices
        found = [
            bits.agreement(
                choice,
                written,
                block_tokens=settings.block_tokens,
                window_blocks=settings.window_blocks,
            )
            for choice in choices
        ]
        both = [a for a in found if a.both]
        timely = [a for a in both if a.in_time]
        shares = {
            "both": (len(both), len(found)),
            "in_time": (len(timely), len(both)),
            "agree": (sum(a.agree for a in timely), len(timely)),
            "agree_whenever": (sum(a.agree for a in both), len(both)),
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
    chance = {
        name: sum(1 / len(choice.alternatives) for choice in d.choices) / len(d.choices)
        for name, d in documents.items()
        if d.choices
    }
    if rates and chance:
        measures["agreement.chance"] = boot.mean(chance)
        ours, theirs = (rates.get(name, {}).get("agree", {}) for name in ("bus", "self_only"))
        measures["sibling.agreement"] = boot.difference(ours, theirs)
        ours, theirs = (rates.get(name, {}).get("in_time", {}) for name in ("bus", "self_only"))
        measures["sibling.in_time"] = boot.difference(ours, theirs)
    return measures


def minus(first: Values, second: Values) -> dict[str, float]:
    """Document by document, where both are there."""
    return {name: first[name] - second[name] for name in first.keys() & second.keys()}


def _by_condition(
    rows: Iterable[Likelihoods], measure: Callable[[Likelihoods], float | None]
) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        value = measure(row)
        if value is not None:
            found.setdefault(row.condition, {})[row.record_id] = value
    return found
