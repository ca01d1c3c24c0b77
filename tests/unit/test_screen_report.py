"""A screen's report: effects paired over documents and seeds, corrected, sealed, made again."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pdt.cli import app
from pdt.errors import ContractBroken, PdtError, UsageError
from pdt.evaluation.measures.bootstrap import Bootstrap
from pdt.screen.design import Compared
from pdt.screen.effects import Drawn, PairedBootstrap, correct, effects_of
from pdt.screen.manifest import SCREEN, read_screen
from pdt.screen.place import DONE, Place
from pdt.screen.report import REPORT, make_report, read_screen_report, verify_report
from tests.support.screens import small_screen, write_design

COMPARED = Compared(confidence=0.95, resamples=2000, seed=1729, correction="holm")


def drawn(values: dict[str, float], documents: list[str] | None = None) -> Drawn:
    found = PairedBootstrap(documents or sorted(values), COMPARED).mean(values)
    assert isinstance(found, Drawn)
    return found


def test_on_all_documents_the_paired_resamples_are_the_evaluations_own() -> None:
    values = {f"d{n}": float(n % 3) for n in range(12)}
    plain = Bootstrap(resamples=2000, confidence=0.95, seed=1729).mean(values)
    assert plain is not None and plain.near(drawn(values))


def test_documents_are_paired_although_a_measure_is_on_some_of_them() -> None:
    documents = [f"d{n:02d}" for n in range(12)]
    whole = drawn({name: float(name[1:]) for name in documents}, documents)
    some = drawn({name: float(name[1:]) for name in documents[:6]}, documents)
    low = drawn({name: float(name[1:]) if name < "d06" else 0.0 for name in documents}, documents)
    share = drawn({name: float(name < "d06") for name in documents}, documents)
    np.testing.assert_allclose(some.draws, low.draws / share.draws)
    assert whole.draws.shape == some.draws.shape


@pytest.mark.paper("Appendix A")
def test_an_effect_is_the_mean_over_seeds_of_a_variant_minus_the_baseline() -> None:
    rng = np.random.RandomState(3)
    base = {s: {f"d{n}": float(v) for n, v in enumerate(rng.rand(40))} for s in (1, 2, 3)}
    gain = {1: 0.10, 2: 0.12, 3: 0.11}
    runs = {("baseline", s): {"m": drawn(v)} for s, v in base.items()}
    runs |= {
        ("better", s): {"m": drawn({n: x + gain[s] for n, x in v.items()})} for s, v in base.items()
    }
    runs |= {("same", s): {"m": drawn(dict(v))} for s, v in base.items()}
    better, same = effects_of(
        runs, baseline="baseline", variants=["better", "same"], measures=["m"],
        compared=COMPARED, comparisons=24,
    )  # fmt: skip
    assert better.estimate == pytest.approx(0.11) and better.clear
    # Documents differ by far more than the variants: without pairing nothing would be seen.
    assert 0.10 <= better.low_all <= better.low < 0.11 < better.high <= better.high_all <= 0.1201
    assert better.p_corrected == pytest.approx(24 * 2 / 2001)
    assert same.estimate == 0 and same.p == 1 and not same.clear
    assert better.by_seed == {"1": 0.1, "2": 0.12, "3": 0.11}


def test_an_effect_of_one_seed_alone_is_less_sure_than_one_of_all() -> None:
    base = {s: {f"d{n}": float(n % 2) for n in range(20)} for s in (1, 2, 3)}
    runs = {("baseline", s): {"m": drawn(v)} for s, v in base.items()}
    for s, v in base.items():
        more = 0.3 if s == 1 else 0.0
        runs["odd", s] = {"m": drawn({n: x + more for n, x in v.items()})}
    (odd,) = effects_of(
        runs, baseline="baseline", variants=["odd"], measures=["m"], compared=COMPARED,
        comparisons=24,
    )  # fmt: skip
    assert odd.estimate == pytest.approx(0.1) and odd.low == 0 and not odd.clear


def test_missing_seeds_and_missing_variants_give_what_can_be_paired() -> None:
    values = {f"d{n}": float(n % 2) for n in range(20)}
    runs = {("baseline", s): {"m": drawn(values)} for s in (1, 2)}
    runs["half", 2] = {"m": drawn(values)}
    runs["lost", 3] = {"m": drawn(values)}
    found = effects_of(
        runs, baseline="baseline", variants=["half", "lost"], measures=["m"],
        compared=COMPARED, comparisons=24,
    )  # fmt: skip
    assert [(e.variant, list(e.by_seed)) for e in found] == [("half", ["2"])]


def test_holm_corrects_for_every_sealed_comparison() -> None:
    assert correct([0.01, 0.04, 0.03], 24, "bonferroni") == pytest.approx([0.24, 0.96, 0.72])
    assert correct([0.01, 0.04, 0.03], 3, "holm") == pytest.approx([0.03, 0.06, 0.06])
    assert correct([0.01], 24, "holm") == pytest.approx([0.24])  # 23 that failed count too


def command(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    if isinstance(done.exception, PdtError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A screen whose runs are whole but for one that failed, with its report."""
    _, out = small_screen(tmp_path_factory.mktemp("screen"))
    place = Place.open(out)
    for entry in place.screen.runs[:-1]:
        command("screen", "run", str(out), "--only", entry.run)
    lost = place.screen.runs[-1].run
    with pytest.raises(UsageError, match=rf"1 of 6 runs have not ended, {lost}"):
        make_report(place)
    place.of(lost).mkdir(parents=True)
    place.fail(lost, PdtError("the loss is nan"))
    said = command("screen", "report", str(out))
    assert "effects are clear after the correction; 1 runs failed." in said
    return out


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.paper("Appendix A")
def test_a_report_has_every_effect_its_cost_and_the_failures(reported: Path) -> None:
    report = read_screen_report(reported / REPORT)
    screen = read_screen(reported)
    assert report.whole and report.screen == screen.seal
    failed = [run for run in report.runs if run.failures]
    assert [(run.run, run.verdict) for run in failed] == [("notes-self-only.2718", None)]
    recall = {e.variant: e for e in report.of("oracle.owner_recall")}
    assert recall.keys() == {"memory-width-16", "notes-self-only"}
    assert list(recall["memory-width-16"].by_seed) == ["1729", "2718"]
    assert list(recall["notes-self-only"].by_seed) == ["1729"]
    assert {*report.not_measured, *(row.measure for row in report.baseline)} == {*screen.measured}
    assert report.costs[0].relative == 1.0
    page = (reported / REPORT / "report.html").read_text()
    assert "the loss is nan" in page and "memory-width-16" in page and "<script" not in page
    assert (reported / REPORT / "report.svg").read_text() in page


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_a_report_is_verified_from_its_runs_and_a_forged_one_is_found(
    reported: Path, tmp_path: Path
) -> None:
    assert "follow from 5 verdicts" in command("verify", str(reported / REPORT))
    with pytest.raises(UsageError, match="exists and is not empty"):
        command("screen", "report", str(reported))
    forged = tmp_path / "screen"
    shutil.copytree(reported, forged, ignore=shutil.ignore_patterns("train"))
    assert verify_report(forged / REPORT).seal == read_screen_report(reported / REPORT).seal
    from pdt.screen.manifest import seal_of

    path = forged / REPORT / "report.json"
    tree = json.loads(path.read_text())
    tree["effects"][0]["estimate"] += 0.5
    path.write_text(json.dumps(tree))
    with pytest.raises(ContractBroken, match="changed after it was sealed"):
        verify_report(forged / REPORT)
    path.write_text(json.dumps(tree | {"seal": seal_of(tree)}))
    with pytest.raises(ContractBroken, match="does not follow from the runs: effects"):
        verify_report(forged / REPORT)
    shutil.copy(reported / REPORT / "report.json", path)
    svg = forged / REPORT / "report.svg"
    svg.write_text(svg.read_text().replace("memory-width-16", "memory-width-99"))
    with pytest.raises(ContractBroken, match="does not show the stored numbers"):
        verify_report(forged / REPORT)


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_a_verdict_of_another_run_is_not_reported(reported: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "screen"
    shutil.copytree(reported, mixed, ignore=shutil.ignore_patterns("train", REPORT))
    place = Place.open(mixed)
    ours, theirs = place.of("baseline.1729"), place.of("memory-width-16.1729")
    shutil.rmtree(ours / "verdict")
    shutil.copytree(theirs / "verdict", ours / "verdict")
    done = json.loads((theirs / DONE).read_text()) | {"run": "baseline.1729"}
    (ours / DONE).write_text(json.dumps(done))
    with pytest.raises(ContractBroken, match="judged with another configuration"):
        make_report(place)


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.paper("Appendix A")
def test_interactions_are_registered_only_after_a_sealed_report(
    reported: Path, tmp_path: Path
) -> None:
    both = {"name": "both", "levels": {"memory width": 16, "notes": "self_only"}}
    design = write_design(tmp_path / "design.yaml", interactions=[both])
    said = command(
        "screen", "register", str(reported), "--design", str(design), "--out", str(tmp_path / "s")
    )
    made, before = read_screen(tmp_path / "s"), read_screen(reported)
    report = read_screen_report(reported / REPORT)
    assert "1 interactions × 2 seeds, registered after report" in said
    assert made.kind == "interactions" and made.registered is not None
    assert made.registered.after_report == report.seal
    assert made.registered.after_screen == before.seal
    assert made.baseline.config == before.baseline.config and made.records == before.records
    assert set(made.variant("both").difference) == {"reads.memory_width", "notes.condition"}
    unsealed = tmp_path / "unsealed"
    unsealed.mkdir()
    shutil.copy(reported / SCREEN, unsealed)
    out = ["--design", str(design), "--out", str(tmp_path / "other")]
    with pytest.raises(UsageError, match=r"holds no report\.json"):
        command("screen", "register", str(unsealed), *out)
    write_design(design, interactions=[both], seeds=[1, 2])
    with pytest.raises(UsageError, match="other seeds than the screen"):
        command("screen", "register", str(reported), *out)
    write_design(design)
    with pytest.raises(UsageError, match="names no interactions"):
        command("screen", "register", str(reported), *out)
    assert not (tmp_path / "other").exists()
