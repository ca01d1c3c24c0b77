"""What a run must show before it trains: an inspected pilot, and a failed executor's audit."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pdt.cli import app
from pdt.config import PdtConfig, load_config
from pdt.config.presets import preset_names, preset_tree, read_yaml
from pdt.errors import ContractBroken, CorruptFile, PdtError, UsageError
from pdt.provenance import read_json_object
from pdt.records.pilot import Pilot, read_pilot, seal_pilot
from pdt.records.review import ReviewLog
from pdt.screen.gates import pilot_gate, scale_gate
from pdt.screen.scale import Check, ScaleAudit, seal_of_audit, write_audit
from pdt.terms import Inspection, Split
from tests.support.evaluations import SMALL, chronicle_documents
from tests.support.screens import STEPS, small_records

CHECKS = ("data alignment", "ownership labels", "routing heads", "optimization",
          "cache behaviour", "plan delivery")  # fmt: skip


def pilot_config(*overrides: str) -> PdtConfig:
    return load_config("nano", overrides=["records.pilot.required=true", *overrides])


@pytest.fixture
def pilot(tmp_path: Path) -> Path:
    """One record of each category that is there, inspected and sealed."""
    documents = {document.category: document for document in chronicle_documents(4)}
    count = len(documents)
    config = pilot_config(f"records.pilot.records={count}", f"records.pilot.categories={count}")
    log = ReviewLog(tmp_path / "reviews.jsonl")
    for document in documents.values():
        log.add(document, Inspection.ACCEPTED, reviewer="Ada", reason="read whole")
    seal_pilot(list(documents.values()), log, config, tmp_path / "pilot")
    return tmp_path / "pilot"


@pytest.mark.paper("§4.3")
def test_canonical_training_asks_for_a_pilot_and_both_numbers_stand_once() -> None:
    pilot = load_config("canonical").records.pilot
    assert (pilot.records, pilot.categories, pilot.architecture_records) == (128, 8, 2048)
    assert pilot.required and load_config("qwen3-14b").records.pilot.required
    for name in preset_names():
        _, tree = read_yaml(Path(__file__).parents[2] / f"src/pdt/presets/{name}.yaml")
        said = tree.get("records", {}).get("pilot", {})
        assert name == "canonical" or said.keys() <= {"required"}, name
    with pytest.raises(UsageError, match="a sealed pilot of 128 records over 8 categories"):
        pilot_gate(load_config("canonical"), None, None)
    assert pilot_gate(load_config("nano"), None, None) == {}
    assert preset_tree("canonical")["records"]["pilot"]["architecture_records"] == 2048


@pytest.mark.paper("§4.3")
def test_a_pilot_of_enough_inspected_records_is_named_and_a_smaller_one_refused(
    pilot: Path,
) -> None:
    found = Pilot.model_validate_json((pilot / "pilot.json").read_bytes())
    there = [f"records.pilot.records={len(found.records)}",
             f"records.pilot.categories={len(found.categories)}"]  # fmt: skip
    assert pilot_gate(pilot_config(*there), pilot, None) == {
        "pilot": {"seal": found.seal, "records": len(found.records)}
    }
    with pytest.raises(ContractBroken, match=r"required: 128 in 8"):
        pilot_gate(load_config("canonical"), pilot, None)
    assert pilot_gate(load_config("canonical"), None, "a test of memory") == {
        "pilot": {"waived": "a test of memory"}
    }
    with pytest.raises(UsageError, match="needs a reason"):
        pilot_gate(load_config("canonical"), None, " ")


@pytest.mark.parametrize("what", ["documents.jsonl", "reviews.jsonl", "pilot.json"])
def test_an_edited_pilot_is_refused(pilot: Path, what: str) -> None:
    path = pilot / what
    path.write_text(path.read_text().replace("Ada", "Eve") + " ")
    with pytest.raises((ContractBroken, CorruptFile)):
        read_pilot(pilot)


def test_a_record_that_nobody_inspected_is_not_in_a_pilot_whose_manifest_was_made_to_fit(
    pilot: Path,
) -> None:
    from pdt.provenance import sha256_file

    (pilot / "reviews.jsonl").write_text("")
    manifest = read_json_object(pilot / "manifest.json")
    manifest["files"]["reviews.jsonl"] = {
        "bytes": 0, "sha256": sha256_file(pilot / "reviews.jsonl"),
    }  # fmt: skip
    (pilot / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ContractBroken, match="does not follow from its documents and reviews"):
        read_pilot(pilot)


def audit(*, failed: str | None = None, layers: int = 36) -> ScaleAudit:
    found = ScaleAudit(
        verdict="1" * 64,
        checkpoint="2" * 64,
        run="3" * 64,
        trunk={"source": "Qwen/Qwen3-4B", "layers": layers, "width": 2560},
        failed_gates=("owner recall",),
        checks=tuple(
            Check(name=name, passed=name != failed, said="looked at", evidence={})
            for name in CHECKS
        ),
        at=datetime(2026, 11, 18, tzinfo=UTC),
        seal="0" * 64,
    )
    return found.model_copy(update={"seal": seal_of_audit(found)})


@pytest.mark.paper("§7.4")
def test_a_larger_rung_trains_only_after_an_audit_or_an_override_that_is_recorded(
    tmp_path: Path,
) -> None:
    larger = load_config("qwen3-14b")
    assert scale_gate(load_config("canonical"), None, None) == {}
    with pytest.raises(UsageError, match=r"larger rung of §7\.4"):
        scale_gate(larger, None, None)
    assert scale_gate(larger, None, "memory alone") == {"scale": {"override": "memory alone"}}
    write_audit(audit(), tmp_path / "audit.json")
    assert scale_gate(larger, tmp_path / "audit.json", None) == {
        "scale": {"audit": audit().seal, "verdict": "1" * 64}
    }
    with pytest.raises(UsageError, match="exists"):
        write_audit(audit(), tmp_path / "audit.json")


@pytest.mark.parametrize("failed", CHECKS)
def test_an_audit_with_a_failed_check_opens_no_larger_rung(tmp_path: Path, failed: str) -> None:
    write_audit(audit(failed=failed), tmp_path / "audit.json")
    with pytest.raises(ContractBroken, match=f"{failed} did not pass"):
        scale_gate(load_config("qwen3-14b"), tmp_path / "audit.json", None)


def test_an_edited_audit_and_one_of_the_same_trunk_are_refused(tmp_path: Path) -> None:
    tree = audit(failed="optimization").model_dump(mode="json")
    tree["checks"][3]["passed"] = True
    (tmp_path / "edited.json").write_text(json.dumps(tree))
    with pytest.raises(ContractBroken, match="changed after it was sealed"):
        scale_gate(load_config("qwen3-14b"), tmp_path / "edited.json", None)
    same = audit(layers=40)
    same = same.model_copy(update={"trunk": {**same.trunk, "width": 5120}})
    write_audit(same.model_copy(update={"seal": seal_of_audit(same)}), tmp_path / "same.json")
    with pytest.raises(ContractBroken, match="a trunk of this very size"):
        scale_gate(load_config("qwen3-14b"), tmp_path / "same.json", None)


def test_a_waiver_and_an_override_stand_in_the_runs_manifest(tmp_path: Path) -> None:
    records = small_records(tmp_path / "train", Split.TRAIN)
    sets = [*SMALL, *STEPS, "records.pilot.required=true", "training.larger_rung=true"]
    command = [
        "train", "run", str(records), "--preset", "nano", "--out", str(tmp_path / "run"),
        "--until", "1", *(word for text in sets for word in ("--set", text)),
    ]  # fmt: skip
    for missing in ([], ["--pilot-waived", "a test"], ["--scale-override", "a test"]):
        done = CliRunner().invoke(app, [*command, *missing])
        assert isinstance(done.exception, PdtError), done.output
        assert not (tmp_path / "run").exists()
    said = ["--pilot-waived", "a test", "--scale-override", "the size of nothing"]
    done = CliRunner().invoke(app, [*command, *said])
    assert done.exit_code == 0, done.output
    inputs = read_json_object(tmp_path / "run" / "manifest.json")["inputs"]
    assert inputs["pilot"] == {"waived": "a test"}
    assert inputs["scale"] == {"override": "the size of nothing"}


@pytest.mark.paper("§4.3")
def test_an_architecture_screen_asks_for_2048_records(tmp_path: Path) -> None:
    from pdt.screen.compile import compile_screen
    from tests.support.screens import asked, write_design

    train = small_records(tmp_path / "train", Split.TRAIN)
    test = small_records(tmp_path / "test", Split.TEST)
    design = write_design(tmp_path / "d.yaml")
    with pytest.raises(UsageError, match="an architecture screen asks for 2,048"):
        compile_screen(asked(design, "records.pilot.required=true"), train, test, tmp_path / "out")
    assert not (tmp_path / "out").exists()
