"""Support: the share of written sentences that the source bears out, and how many say one twice.

Only documents that keep their source's text have it.
"""

from pdt.evaluation.measures.evidence import Evidence, Measured
from pdt.sentences.support import support_of


def support_measures(evidence: Evidence) -> Measured:
    """For every condition under which lanes wrote."""
    rates: dict[str, dict[str, float]] = {}
    answered = evidence.raw.answered()
    for written in evidence.raw.written:
        source = answered(written).source
        if source is None:
            continue
        found = support_of([lane.text for lane in written.lanes], source)
        if found.sentences:
            for name, value in (("support", found.share), ("repetition", found.repetition)):
                rates.setdefault(f"{written.condition}.{name}", {})[written.record_id] = value
    return {name: evidence.boot.mean(values) for name, values in rates.items()}
