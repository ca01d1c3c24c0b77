"""The trained model in the package, on documents of the test split that it has never seen."""

import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
import torch

from pdt.chronicle import Chronicle
from pdt.chronicle.dials import turn_dials
from pdt.chronicle.meter import nano_meter
from pdt.evaluation.generate.checkpoints import load_for_evaluation
from pdt.evaluation.protocol.evidence_gates import Verdict
from pdt.evaluation.report.results import read_results
from pdt.evaluation.verify.verify import verify_results
from pdt.model.oracle import oracle_plans
from pdt.model.pdt import ParallelDecoder
from pdt.model.store import load_model
from pdt.notes.visibility import visibility_table
from pdt.records.batch import RecordBatch, collate
from pdt.records.compile import Compiler
from pdt.records.schema import TrainingRecord
from pdt.study.recipe import load_recipe
from pdt.study.summary import StudySummary
from pdt.terms import NotesCondition, Split
from pdt.training.rollout import Rollout, roll_out
from tests.support.commands import run_here

DOCUMENTS = 12


@pytest.fixture(scope="module")
def model() -> ParallelDecoder:
    return load_model(Path("nano")).eval()


@pytest.fixture(scope="module")
def batch(model: ParallelDecoder) -> RecordBatch:
    test = load_recipe("nano").corpora["test"]
    dials = turn_dials("nano", test.dials)
    chronicle = Chronicle(test.seed, Split.TEST, dials, nano_meter())
    compiler = Compiler.load(model.config)
    records = [compiler.compile(d.taught) for d in chronicle.documents(DOCUMENTS)]
    return collate([dict(r) for r in records if isinstance(r, TrainingRecord)])


@torch.no_grad()
def read(model: ParallelDecoder, batch: RecordBatch, condition: NotesCondition) -> Rollout:
    prompt = model.read_prompt(batch.prompt_tokens_BS.clamp(min=0), batch.prompt_valid_BS.sum(1))
    frontier = model.open_lanes(prompt, oracle_plans(model, prompt, batch))
    table = visibility_table(condition, model.config.lanes.count)
    return roll_out(model, frontier, batch.section_tokens_BKT, may_read_KK=table)


@pytest.mark.paper("Eq. 10", "Table 3")
def test_notes_tell_the_shipped_lanes_what_their_siblings_coined(
    model: ParallelDecoder, batch: RecordBatch
) -> None:
    bus, without = (
        read(model, batch, condition).scores_BKT
        for condition in (NotesCondition.BUS, NotesCondition.NO_DYNAMIC)
    )
    depends = batch.dependency_token_BKT
    change = (
        (without - bus)[depends].mean(),
        (without - bus)[batch.token_valid_BKT & ~depends].mean(),
    )
    assert change[0] > 0.5 and abs(change[1]) < 0.1


def test_the_verdict_in_the_package_is_on_the_weights_in_the_package() -> None:
    study = StudySummary.model_validate_json(
        (resources.files("pdt") / "weights" / "summary.json").read_text(encoding="utf-8")
    )
    for role, condition, name in (
        ("bus", NotesCondition.BUS, "nano"),
        ("self_only", NotesCondition.SELF_ONLY, "nano-self-only"),
    ):
        assert load_for_evaluation(Path(name), condition)[1] == study.models[0][role]


@pytest.mark.slow
@pytest.mark.paper("Table 3")
def test_the_shipped_models_meet_the_gates_of_table_3_on_some_documents(tmp_path: Path) -> None:
    asked = ("oracle", "learned", "zero", "swap", "no_dynamic", "self_only")
    conditions = [f"--condition={name}" for name in asked]
    for arguments in (
        ["chronicle", "write", "--study=nano", "--split=test", "--count=8", "--out=test"],
        ["record", "compile", "test", "--preset=nano", "--out=records"],
        ["eval", "run", "records", "--model=nano", "--self-only=nano-self-only", "--out=verdict",
         "--repeats=1", *conditions],
    ):  # fmt: skip
        run_here(*arguments, cwd=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"test", "records", "verdict"}
    verify_results(tmp_path / "verdict")
    # The harder gates, H1 to H8, are not met by these models (docs/log.md).
    gates = [
        gate
        for gate in read_results(tmp_path / "verdict").gates
        if gate.gate.source in ("Table 3", "project")
    ]
    by_verdict = {
        verdict: {gate.gate.measure for gate in gates if gate.verdict is verdict}
        for verdict in Verdict
    }
    assert len(gates) == 15
    assert by_verdict[Verdict.UNMET] <= {"execution.speedup"}  # a test does not judge by the clock
    # Both models must coin in time: of eight documents some are left, too few for a bound.
    assert by_verdict[Verdict.NOT_MEASURED] <= {"sibling.agreement"}


def test_the_demo_shows_three_lanes_then_swapped_plans_then_no_notes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pdt", "demo"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("section 1, lane") == 3
    for said in ("the request", "change places", "the notes are removed", "span reduction"):
        assert said in done.stdout
    first, *_, without = re.findall(r"\((they (?:agree|differ))\)", done.stdout)
    assert (first, without) == ("they agree", "they differ")
