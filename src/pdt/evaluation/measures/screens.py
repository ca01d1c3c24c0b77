"""How far a screen that judges beside the chosen one agrees with it.

Paper: §7.2.
"""

from collections.abc import Mapping

from pdt.evaluation.measures.evidence import Evidence, Measured


def screen_measures(evidence: Evidence) -> Measured:
    """On the lanes and facts that both have judged, for each screen beside the chosen one."""
    chosen, boot = evidence.judged.get(evidence.settings.screen, {}), evidence.boot
    measures: Measured = {}
    for name in sorted(evidence.judged.keys() - {evidence.settings.screen}):
        beside = evidence.judged[name]
        agree: dict[str, list[float]] = {}
        hits: dict[str, list[float]] = {}
        false_alarms: dict[str, list[float]] = {}
        for key in sorted(chosen.keys() & beside.keys()):
            pairs = [
                (a, b)
                for ours, theirs in zip(
                    chosen[key].mentioned_KF, beside[key].mentioned_KF, strict=True
                )
                for a, b in zip(ours, theirs, strict=True)
            ]
            agree.setdefault(key[1], []).extend(float(a == b) for a, b in pairs)
            hits.setdefault(key[1], []).extend(float(b) for a, b in pairs if a)
            false_alarms.setdefault(key[1], []).extend(float(b) for a, b in pairs if not a)
        measures |= {
            f"screens.{name}_agrees": boot.mean(_means(agree)),
            f"screens.{name}_finds": boot.mean(_means(hits)),
            f"screens.{name}_false_alarms": boot.mean(_means(false_alarms)),
        }
    return measures


def _means(values: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: sum(v) / len(v) for name, v in values.items() if v}
