"""Verify a result directory: every file, every judgment that can be made again, every number.

Digests find a changed file. Beyond them, everything that follows from the raw lines is computed
again, so that a directory whose manifest was rewritten to fit is found too.

Paper: §7.2, Table 3.
"""

from pathlib import Path

from pdt.errors import ContractBroken
from pdt.evaluation.evidence_gates import judge_gates
from pdt.evaluation.exact import ExactScreen
from pdt.evaluation.measures import Measures, compute_measures
from pdt.evaluation.report import MADE_BY, renderings
from pdt.evaluation.results import (
    COINED,
    DOCUMENTS,
    GENERATIONS,
    JUDGMENTS,
    LIKELIHOODS,
    RESULTS,
    Raw,
    Results,
    read_raw,
    read_results,
)
from pdt.provenance import MANIFEST, check_manifest, code_revision, read_json_object

REQUIRED = (DOCUMENTS, GENERATIONS, COINED, JUDGMENTS, LIKELIHOODS, RESULTS)


def verify_results(directory: Path) -> tuple[Results, int]:
    """The results, and how many judgments were made again; the first difference is refused."""
    manifest = check_manifest(directory, REQUIRED)
    if manifest.get("made_by") != MADE_BY:
        raise ContractBroken(
            f"{directory} was made by {manifest.get('made_by')!r}.",
            "Give a directory of `pdt eval run`.",
        )
    stored, raw = read_results(directory), read_raw(directory)
    if manifest["config"].get("settings") != stored.settings.model_dump(mode="json"):
        raise _changed(directory / RESULTS, "settings are not those that the manifest names")
    if {name: manifest["inputs"].get(name) for name in stored.models} != stored.models:
        raise _changed(directory / RESULTS, "checkpoints are not those that the manifest names")
    _check_lines(directory, raw)
    judged = _judge_again(directory, raw)
    _compare(directory, stored, compute_measures(raw, stored.settings))
    for name, text in renderings(stored, raw).items():
        if (directory / name).read_text(encoding="utf-8") != text:
            raise _changed(directory / name, "does not show the stored numbers")
    strangers = {p.name for p in directory.iterdir()} - {*manifest["files"], "manifest.json"}
    if strangers:
        raise _changed(directory / min(strangers), "is not named by the manifest")
    return stored, judged


def _check_lines(directory: Path, raw: Raw) -> None:
    """Every line is of a document that is there, and none is there twice."""
    known = {document.record_id for document in raw.documents}
    for name, rows in (
        (GENERATIONS, [(row.condition, row.record_id) for row in raw.written]),
        (COINED, [(row.condition, row.record_id) for row in raw.coined]),
        (LIKELIHOODS, [(row.condition, row.record_id) for row in raw.likelihoods]),
        (JUDGMENTS, [(f"{row.screen} {row.condition}", row.record_id) for row in raw.judgments]),
    ):
        for number, (condition, record_id) in enumerate(rows, start=1):
            if record_id not in known:
                raise _changed(directory / name, f"line {number} is of no document ({record_id})")
            if rows.index((condition, record_id)) != number - 1:
                raise _changed(directory / name, f"line {number} repeats {condition} {record_id}")
    written = {(row.condition, row.record_id) for row in raw.written}
    judged = {(row.condition, row.record_id) for row in raw.judgments}
    if judged != written:
        raise _changed(directory / JUDGMENTS, "does not judge exactly what was written")


def _judge_again(directory: Path, raw: Raw) -> int:
    """The exact screen needs nothing but the texts, so its judgments are made again."""
    documents = {document.record_id: document for document in raw.documents}
    texts = {
        (row.condition, row.record_id): [lane.text for lane in row.lanes] for row in raw.written
    }
    screen, again = ExactScreen(), 0
    for number, row in enumerate(raw.judgments, start=1):
        if row.screen != screen.name:
            continue
        key = (row.condition, row.record_id)
        if screen.judge(documents[row.record_id], texts[key]) != row.judged:
            raise _changed(
                directory / JUDGMENTS, f"line {number} ({' '.join(key)}) is not what the texts say"
            )
        again += 1
    return again


def _compare(directory: Path, stored: Results, computed: Measures) -> None:
    for name in sorted({*stored.measures, *computed}):
        ours, theirs = stored.measures.get(name), computed.get(name)
        if ours is None or theirs is None or not ours.near(theirs):
            raise _changed(directory / RESULTS, f"{name} is {ours}; the stored lines give {theirs}")
    if judge_gates(stored.measures) != stored.gates:
        raise _changed(directory / RESULTS, "the gates do not follow from the measures")


def _changed(path: Path, what: str) -> ContractBroken:
    made = read_json_object(path.parent / MANIFEST).get("code_revision")
    now = code_revision()
    other = f" Or pdt was: {made} made it, {now} reads it; verify it with the former."
    return ContractBroken(
        f"{path}: {what}.",
        "The directory was changed after it was written. Run the evaluation again."
        + (other if made != now else ""),
    )
