"""The report of an evaluation: results.json first, then the same numbers as Markdown and as a page.

Paper: §7, Table 3.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdt.evaluation.lines.raw import Raw, write_raw
from pdt.evaluation.measures.compute import compute_measures
from pdt.evaluation.protocol.evidence_gates import MeasuredGate, Verdict, had_by, judge_gates
from pdt.evaluation.protocol.settings import EvaluationSettings
from pdt.evaluation.report.html import render_html
from pdt.evaluation.report.results import RESULTS, Results
from pdt.evaluation.report.tables import render_markdown
from pdt.provenance import atomic_path, new_directory, sha256_json, write_manifest

MARKDOWN, PAGE = "report.md", "report.html"
MADE_BY = "pdt eval run"
RECORDS = "records"
"""The input that is no checkpoint."""


def conclude(
    raw: Raw, settings: EvaluationSettings, *, config: Mapping[str, Any], inputs: Mapping[str, str]
) -> Results:
    """Measures and gates, from the raw lines alone; bound to what they were made from."""
    measures = dict(sorted(compute_measures(raw, settings).items()))
    return Results(
        settings=settings,
        models=checkpoints(inputs),
        made_from=made_from(config, inputs),
        measures=measures,
        gates=judge_gates(measures, had_by(raw.documents)),
    )


def checkpoints(inputs: Mapping[str, str]) -> dict[str, str]:
    """The digests of the models among the inputs, by role."""
    return {name: digest for name, digest in inputs.items() if name != RECORDS}


def made_from(config: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """One digest of all that a manifest says of a run: whoever names results.json names these."""
    return sha256_json({"config": config, "inputs": inputs})


def renderings(results: Results, raw: Raw) -> dict[str, str]:
    """Every file that is a view of the results, by name."""
    return {
        RESULTS: results.model_dump_json(indent=2) + "\n",
        MARKDOWN: render_markdown(results, raw),
        PAGE: render_html(results, raw),
    }


def write_report(out: Path, raw: Raw, results: Results, *, config: object, inputs: object) -> None:
    """The result directory, whole or not at all."""
    with new_directory(out) as work:
        write_raw(work, raw)
        for name, text in renderings(results, raw).items():
            with atomic_path(work / name) as partial:
                partial.write_text(text, encoding="utf-8")
        write_manifest(work, made_by=MADE_BY, config=config, inputs=inputs)


def all_met(gates: tuple[MeasuredGate, ...]) -> bool:
    """Of the gates that could be asked of this corpus, and there was one."""
    asked = [gate for gate in gates if gate.verdict is not Verdict.NOT_APPLICABLE]
    return bool(asked) and all(gate.verdict is Verdict.MET for gate in asked)
