"""A study's verdict over its seeds: every gate in every seed, and which way the effects go."""

from pathlib import Path

from pdt.contract import Contract, Line, Sha256
from pdt.errors import ContractBroken
from pdt.evaluation.protocol.evidence_gates import MeasuredGate, Verdict
from pdt.evaluation.report.shown import MARK, gate_row
from pdt.evaluation.report.write import RECORDS
from pdt.evaluation.verify.verify import verify_results
from pdt.provenance import MANIFEST, atomic_path, read_json_object, write_json
from pdt.study.directions import Direction, directions_of
from pdt.study.steps import verdict_of

SUMMARY, PAGE = "summary.json", "study.md"


class GateOverSeeds(Contract):
    """One row of Table 3 in every seed."""

    judged: tuple[MeasuredGate, ...]

    @property
    def verdict(self) -> Verdict:
        """Met in all seeds, or the first verdict that is not."""
        found = (judged.verdict for judged in self.judged if judged.verdict is not Verdict.MET)
        return next(found, Verdict.MET)


class StudySummary(Contract):
    """summary.json: what follows from the verdicts of a study."""

    code_revisions: tuple[Line, ...]
    """By seed: the code that judged it."""
    documents: int
    models: tuple[dict[str, Sha256], ...]
    """By seed: the digests of the bus model and of its control."""
    gates: tuple[GateOverSeeds, ...]
    directions: tuple[Direction, ...]

    @property
    def right(self) -> bool:
        """Does every effect go the way it should?"""
        return all(direction.right for direction in self.directions)

    @property
    def asked(self) -> tuple[GateOverSeeds, ...]:
        """The gates that could be asked of the corpus."""
        return tuple(gate for gate in self.gates if gate.verdict is not Verdict.NOT_APPLICABLE)

    @property
    def met(self) -> bool:
        return all(gate.verdict is Verdict.MET for gate in self.asked)


def summarize(out: Path, seeds: int) -> StudySummary:
    """Verify every seed's verdict; a gate is met when it is met in all."""
    verdicts = [verdict_of(out, seed) for seed in range(seeds)]
    results = [verify_results(verdict).results for verdict in verdicts]
    manifests = [read_json_object(verdict / MANIFEST) for verdict in verdicts]
    judged_on = [manifest["inputs"][RECORDS] for manifest in manifests]
    for verdict, records in zip(verdicts, judged_on, strict=True):
        if records != judged_on[0]:
            raise ContractBroken(
                f"{verdict} was judged on other documents than {verdicts[0]}.",
                "Seeds stand in one table only on the same documents. Judge it again.",
            )
    return StudySummary(
        code_revisions=tuple(manifest["code_revision"] for manifest in manifests),
        documents=results[0].settings.documents,
        models=tuple(result.models for result in results),
        gates=tuple(
            GateOverSeeds(judged=judged)
            for judged in zip(*(result.gates for result in results), strict=True)
        ),
        directions=directions_of([result.measures for result in results]),
    )


def write_summary(summary: StudySummary, out: Path) -> None:
    write_json(out / SUMMARY, summary.model_dump(mode="json"))
    with atomic_path(out / PAGE) as partial:
        partial.write_text(as_markdown(summary), encoding="utf-8")


def as_markdown(summary: StudySummary) -> str:
    """study.md: the gates, then which way the effects go."""
    return "\n".join(
        [
            "# The nano study",
            "",
            *gate_lines(summary),
            "",
            "Every seed's report is in `seed-N/verdict`; `pdt verify` computes it again.",
            "",
            "## Which way the effects go",
            "",
            *(f"- {_marked(d.outcome, met=d.right)}: {said(d)}" for d in summary.directions),
            "",
        ]
    )


def gate_lines(summary: StudySummary) -> list[str]:
    """One row a gate, one column a seed: estimate with its interval over documents."""
    seeds = len(summary.gates[0].judged)
    met = sum(gate.verdict is Verdict.MET for gate in summary.gates)
    head = [
        "question", "evidence", *(f"seed {seed}" for seed in range(seeds)), "asked for", "source",
        "verdict",
    ]  # fmt: skip
    rows, before = [head, ["---"] * len(head)], ""
    for gate in summary.gates:
        question, name, _, asked, source, _ = gate_row(gate.judged[0], summary.documents)
        measured = (gate_row(judged, summary.documents)[2] for judged in gate.judged)
        verdict = _marked(MARK[gate.verdict], met=gate.verdict is Verdict.MET)
        rows.append(
            ["" if question == before else question, name, *measured, asked, source, verdict]
        )
        before = question
    return [
        f"**{met} of {len(summary.asked)} gates are met** in "
        f"{'every one of ' if seeds > 1 else ''}{seeds} seed{'s' if seeds > 1 else ''}, "
        f"on {summary.documents} documents of the test split: executor",
        "capability with oracle plans, the rest with learned ones; 95% intervals over documents.",
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _marked(word: str, *, met: bool) -> str:
    """What is not as it should be is set bold."""
    return word if met else f"**{word}**"


def said(direction: Direction) -> str:
    """An effect with both its sides, seed by seed."""

    def number(value: float | None) -> str:
        return "not measured" if value is None else f"{value:.3f}"

    pairs = zip(direction.higher, direction.lower, strict=True)
    found = ", ".join(f"{number(high)} against {number(low)}" for high, low in pairs)
    return f"{direction.effect} ({found})"
