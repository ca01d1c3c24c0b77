"""The audit of a failed executor, before a larger trunk is asked for: six checks with evidence.

A larger trunk answers whether a failure was the trunk's only if nothing else explains it. Every
check reads the run's own artefacts: its records, its metrics, its checkpoint on the documents that
it was judged on.

Paper: §7.4.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import torch
from pydantic import AwareDatetime

from pdt.contract import Contract, Line, Sha256, parse_contract
from pdt.errors import BindingMismatch, ContractBroken, UsageError
from pdt.evaluation.generate.batches import HeldOutBatch, batch_of, held_out_pairs
from pdt.evaluation.generate.checkpoints import load_for_evaluation
from pdt.evaluation.protocol.evidence_gates import Verdict
from pdt.evaluation.verify.stored_run import StoredRun, read_stored_run
from pdt.model.pdt import ParallelDecoder
from pdt.parse import NotParsed, parse_json
from pdt.provenance import MANIFEST, read_json_object, sha256_file, sha256_json, write_json
from pdt.records.batch import RecordShards
from pdt.terms import NotesCondition, Split
from pdt.tokenizer import load_tokenizer
from pdt.training.checkpoint import latest_checkpoint
from pdt.training.watch.metrics import Metrics, read_metrics

EXECUTOR = "Executor capability"
"""The question of Table 3 whose gates say that an executor failed."""


class Check(Contract):
    """One of the six."""

    name: Line
    passed: bool
    said: Line
    """What was found, in a sentence."""
    evidence: dict[str, float]


class ScaleAudit(Contract):
    """The record that a larger rung asks for."""

    schema_version: Literal["pdt.scale-audit/1"] = "pdt.scale-audit/1"
    verdict: Sha256
    """Of the manifest of the verdict in which the executor failed."""
    checkpoint: Sha256
    """Of the model that was judged."""
    run: Sha256
    """Of the manifest of the run that trained it."""
    trunk: dict[str, str | int | None]
    """The smaller rung: where its trunk came from, its layers and width."""
    failed_gates: tuple[Line, ...]
    """Of the executor, in that verdict."""
    checks: tuple[Check, ...]
    at: AwareDatetime
    seal: Sha256
    """Of everything else here."""

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


@dataclass(frozen=True)
class Audited:
    """A failed executor with everything the checks read."""

    verdict: StoredRun
    run: Path
    model: ParallelDecoder
    trained_on: RecordShards
    judged_on: RecordShards
    batch: HeldOutBatch
    metrics: list[Metrics]
    documents: int
    """How many of each corpus are looked at."""


def open_audit(
    verdict: Path, run: Path, held_out: Path, *, records: Path | None = None, documents: int = 8
) -> Audited:
    """Everything, bound together: the verdict's model is the run's, its corpus the held-out one."""
    stored = read_stored_run(verdict)
    checkpoint = latest_checkpoint(run)
    if checkpoint is None:
        raise UsageError(
            f"{run} holds no whole checkpoint.\nGive the directory of `pdt train run`."
        )
    model, digest = load_for_evaluation(checkpoint, NotesCondition.BUS)
    manifest = read_json_object(run / MANIFEST)
    named = manifest["inputs"]["records"]
    trained_on = RecordShards(records or Path(named["directory"]), split=Split.TRAIN)
    judged_on = RecordShards(held_out, split=stored.raw.documents[0].split)
    sealed = read_json_object(verdict / MANIFEST)["inputs"]
    rows = [
        ("checkpoint", stored.results.models["bus"], digest),
        ("held-out records", sealed["records"], judged_on.digest),
        ("training records", named["digest"], trained_on.digest),
    ]
    wrong = [(name, a[:12], b[:12]) for name, a, b in rows if a != b]
    if wrong:
        raise BindingMismatch(
            f"{verdict} and {run} do not belong together.",
            wrong,
            "Give the run whose last checkpoint was judged, and the records of both.",
            sides=("named", "given"),
        )
    tokenizer = load_tokenizer(judged_on.config.records.tokenizer)
    count = min(documents, len(stored.raw.documents))
    pairs = held_out_pairs(judged_on, tokenizer, documents=count)
    return Audited(
        stored, run, model.eval(), trained_on, judged_on, batch_of(pairs), read_metrics(run), count
    )


def audit_scale(audited: Audited, telling: Callable[[str], None] = lambda text: None) -> ScaleAudit:
    """All six checks; refused where no executor failed."""
    from pdt.screen.scale_checks import CHECKS

    failed = [
        gate.gate.name
        for gate in audited.verdict.results.gates
        if gate.question == EXECUTOR and gate.verdict is Verdict.UNMET
    ]
    if not failed:
        raise UsageError(
            f"{audited.verdict.directory}: no gate of the executor is unmet.\n"
            "A larger trunk is asked for when an executor has failed (§7.4)."
        )
    checks = []
    for check in CHECKS:
        telling(check.__name__.replace("_", " "))
        with torch.inference_mode():
            checks.append(check(audited))
    trunk = audited.model.config.trunk
    audit = ScaleAudit(
        verdict=sha256_file(audited.verdict.directory / MANIFEST),
        checkpoint=audited.verdict.results.models["bus"],
        run=sha256_file(audited.run / MANIFEST),
        trunk={"source": trunk.source, "layers": trunk.shape.layers, "width": trunk.shape.width},
        failed_gates=tuple(failed),
        checks=tuple(checks),
        at=datetime.now(UTC).replace(microsecond=0),
        seal="0" * 64,
    )
    return audit.model_copy(update={"seal": seal_of_audit(audit)})


def write_audit(audit: ScaleAudit, out: Path) -> None:
    if out.exists():
        raise UsageError(f"{out} exists.\nAn audit is not written over: choose another --out.")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_json(out, audit.model_dump(mode="json"))


def read_audit(path: Path) -> ScaleAudit:
    """A sealed audit, unchanged."""
    remedy = "Make it with `pdt scale audit`."
    try:
        tree = parse_json(path.read_bytes())
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist.\n{remedy}") from error
    except (OSError, NotParsed) as error:
        raise ContractBroken(f"{path} cannot be read: {error}.", remedy) from error
    if not isinstance(tree, dict):
        raise ContractBroken(f"{path} is no audit.", remedy)
    audit = parse_contract(ScaleAudit, tree, where=str(path), remedy=remedy)
    if seal_of_audit(audit) != audit.seal:
        raise ContractBroken(f"{path} was changed after it was sealed.", remedy)
    return audit


def seal_of_audit(audit: ScaleAudit) -> str:
    return sha256_json(audit.model_dump(mode="json", exclude={"seal"}))
