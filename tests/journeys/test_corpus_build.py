"""From raw bundles to records: the same bytes from any processes, after any kill."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pdt.cli import app
from pdt.config import PdtConfig, load_config
from pdt.errors import BindingMismatch, ContractBroken, PdtError, UsageError
from pdt.lock import LOCK
from pdt.records.pipeline.cluster import run_on_datatrove, submit_to_slurm
from pdt.records.pipeline.layout import Build
from pdt.records.pipeline.run import BuildReport, build_corpus
from pdt.teacher.budget import Budget, BudgetSpent
from pdt.teacher.document import TaughtDocument
from pdt.teacher.journal import Journal
from tests.support.slurm import slurm_stand_in
from tests.support.teacher_server import TeacherServer, serving

pytestmark = pytest.mark.slow

COUNT, PART = 40, 8
KEY = "sk-test-Zx81qPlm00secret"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    if isinstance(result.exception, PdtError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty Chronicle bundles, one of them damaged."""
    out = tmp_path_factory.mktemp("chronicle") / "out"
    run("chronicle", "write", "--count", str(COUNT), "--bundles", "--out", str(out))
    damaged = sorted((out / "bundles").iterdir())[3]
    (damaged / "wikitext.txt").write_bytes(b"other bytes")
    return out


def documents(sources: Path) -> list[TaughtDocument]:
    lines = (sources / "documents.jsonl").read_text().splitlines()
    return [TaughtDocument.model_validate_json(line) for line in lines]


def settings(*more: str) -> PdtConfig:
    return load_config("nano", overrides=[f"records.shard_records={PART}", *more])


def a_build(sources: Path, out: Path, *more: str, calls: Path | None = None) -> Build:
    return Build(
        bundles=sources / "bundles",
        candidates=sources / "candidates" / "candidates.jsonl",
        splits=sources / "candidates" / "splits.json",
        out=out,
        config=settings(*more),
        calls=calls,
    )


def built(sources: Path, out: Path, *more: str, **named: Any) -> BuildReport:
    build = a_build(sources, out, *more, calls=named.pop("calls", None))
    build.open(resume=named.pop("resume", False))
    return build_corpus(build, **named)


def tree(root: Path) -> dict[str, bytes]:
    """Every file of a corpus but the calls, whose ledger holds times, and the lock."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in ("calls", LOCK)
    }


@pytest.fixture(scope="module")
def whole(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "out"
    built(sources, out)
    return out


@pytest.mark.paper("§4.1", "§4.2", "§4.3", "Table 1")
def test_chronicle_bundles_become_the_documents_that_chronicle_teaches(
    sources: Path, whole: Path
) -> None:
    report = BuildReport.model_validate_json((whole / "report.json").read_bytes())
    taught = {line for file in (whole / "taught").glob("*.documents.jsonl") for line in file.open()}
    known = set((sources / "documents.jsonl").open())
    assert report.bundles == COUNT and len(taught) == report.accepted == report.taught
    assert taught < known and len(known - taught) == report.rejected["source_gates"] >= 1
    assert sum(report.records.values()) == report.accepted
    run("record", "verify", str(whole / "records"))


def test_every_rejection_is_kept_with_its_reason(sources: Path, whole: Path) -> None:
    rejected = [json.loads(line) for line in (whole / "rejected.jsonl").open()]
    assert any("not the bytes its bundle names" in entry["reasons"][0] for entry in rejected)
    assert all(entry["step"] == "source_gates" and entry["reasons"] for entry in rejected)
    assert sum(json.loads((whole / "report.json").read_text())["rejected"].values()) == len(
        rejected
    )


def test_more_processes_and_datatrove_give_the_same_bytes(
    sources: Path, whole: Path, tmp_path: Path
) -> None:
    built(sources, tmp_path / "two", workers=2)
    assert tree(tmp_path / "two") == tree(whole)
    build = a_build(sources, tmp_path / "trove")
    build.open(resume=False)
    run_on_datatrove(build, workers=2)
    assert tree(tmp_path / "trove") == tree(whole)


def test_slurm_jobs_are_submitted_in_order_and_give_the_same_bytes(
    sources: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real scripts and tasks; only the scheduler is a program of ours that runs them at once."""
    slurm_stand_in(tmp_path / "bin", monkeypatch)
    build = a_build(sources, tmp_path / "out", f"records.shard_records={COUNT}")
    with pytest.raises(UsageError, match=r"cluster\.partition is not set"):
        submit_to_slurm(build, build.config.cluster)
    build.open(resume=False)
    cluster = settings("cluster.partition=cpu").cluster
    assert len(submit_to_slurm(build, cluster)) == 4
    built(sources, tmp_path / "here", f"records.shard_records={COUNT}")
    assert tree(tmp_path / "out") == tree(tmp_path / "here")


@pytest.mark.parametrize(
    ("partition", "said"),
    [("null", "cluster.partition is not set"), ("cpu", "Submit from a Slurm login node")],
)
def test_a_build_that_cannot_be_submitted_leaves_nothing(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition: str, said: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # where no sbatch is
    command = [
        *(sys.executable, "-m", "pdt", "corpus", "build", str(sources / "bundles")),
        *("--out", str(tmp_path / "out"), "--on", "slurm"),
        *("--set", f"cluster.partition={partition}"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_build_killed_three_times_at_random_ends_byte_identical(
    sources: Path, whole: Path, tmp_path: Path
) -> None:
    out, dice = tmp_path / "out", random.Random(1729)
    command = [
        *(sys.executable, "-m", "pdt", "corpus", "build", str(sources / "bundles")),
        *("--out", str(out), "--set", f"records.shard_records={PART}", "--workers", "2"),
    ]
    for step in ("sources", "taught", "records"):
        resume = ["--resume"] if out.exists() else []
        process = subprocess.Popen([*command, *resume], start_new_session=True)
        wanted = dice.randrange(1, 3)
        while len(list(out.glob(f"{step}/*-0000?.json"))) < wanted:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run([*command, "--resume"], check=True, capture_output=True)
    assert tree(out) == tree(whole)


@pytest.fixture
def server(sources: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TeacherServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(documents(sources)) as running:
        yield running


def asked(server: TeacherServer, *more: str) -> tuple[str, ...]:
    return (
        "teacher.kind=endpoint",
        f"teacher.endpoint.base_url={server.url}",
        "teacher.endpoint.model=demo",
        "teacher.endpoint.price_in=1",
        "teacher.endpoint.price_out=4",
        "teacher.endpoint.max_output_tokens=4096",
        "teacher.endpoint.first_wait=0.01",
        "teacher.budget=10",
        "teacher.batch.poll=0.02",
        *more,
    )


def test_a_language_model_teaches_through_the_same_command_and_a_replay_repeats_it(
    sources: Path, server: TeacherServer, tmp_path: Path
) -> None:
    server.faults = ["429", "500", "breaks_rule", "cut", "invalid_json"]
    first = built(sources, tmp_path / "first", *asked(server))
    assert first.taught == first.accepted and first.calls == 2 * first.taught + 2
    assert len(set(server.paid)) == len(server.paid) == first.calls
    count = len(server.asked)
    replay = asked(server, "teacher.kind=replay")
    again = built(sources, tmp_path / "again", *replay, calls=tmp_path / "first" / "calls")
    assert again == first and len(server.asked) == count
    one, two = tree(tmp_path / "first"), tree(tmp_path / "again")
    manifests = [name for name in one if one[name] != two.get(name)]
    assert all(name.endswith("manifest.json") for name in manifests), "they name the teacher's kind"


def test_a_killed_run_repeats_no_paid_call(
    sources: Path, server: TeacherServer, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    overrides = [f"records.shard_records={PART}", *asked(server)]
    command = [sys.executable, "-m", "pdt", "corpus", "build", str(sources / "bundles")]
    command += ["--out", str(out)]
    command += [part for override in overrides for part in ("--set", override)]
    for paid in (5, 30):
        server.sends = paid  # and keeps every later answer to itself
        process = subprocess.Popen([*command, *(["--resume"] if out.exists() else [])])
        while len(server.paid) <= paid:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    server.sends = None
    subprocess.run([*command, "--resume"], check=True, capture_output=True)
    answered = {transcript.key for transcript in Journal(out / "calls").transcripts()}
    assert answered == set(server.paid)
    # Only calls in flight when the process died may have been asked twice: at most one a thread.
    repeated = len(server.paid) - len(set(server.paid))
    assert repeated <= 2 * settings().teacher.endpoint.concurrency
    assert (
        len(server.paid)
        == 2 * BuildReport.model_validate_json((out / "report.json").read_bytes()).taught + repeated
    )
    for path in out.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()
    built(sources, tmp_path / "undisturbed", *asked(server))
    assert tree(tmp_path / "undisturbed") == tree(out)


def test_batches_give_the_same_corpus(sources: Path, server: TeacherServer, tmp_path: Path) -> None:
    single = built(sources, tmp_path / "single", *asked(server))
    server.faults = ["", "500", "", "breaks_rule"]
    batched = built(
        sources, tmp_path / "batch", *asked(server, "teacher.batch.calls=30"), batch=True
    )
    assert batched.taught == single.taught and batched.calls == single.calls + 1
    assert batched.cost < 0.6 * single.cost
    one, two = tree(tmp_path / "single"), tree(tmp_path / "batch")
    same = [name for name in one if name.endswith("accepted.jsonl")]
    assert same and all(one[name] == two[name] for name in same)


def test_a_dry_run_estimates_and_sends_nothing(
    sources: Path, server: TeacherServer, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    overrides = [f"records.shard_records={PART}", *asked(server)]
    arguments = ["corpus", "build", str(sources / "bundles"), "--out", out, "--json"]
    arguments += [part for override in overrides for part in ("--set", override)]
    estimate = json.loads(run(*arguments, "--dry-run"))
    assert server.asked == [] and estimate["answered"] == 0
    assert estimate["calls"] == 2 * estimate["sources"]
    report = json.loads(run(*arguments, "--resume"))
    assert estimate["expected"] / 3 < report["cost"] < 3 * estimate["expected"]
    assert report["cost"] < estimate["at_most"]
    again = json.loads(run(*arguments, "--resume", "--dry-run"))
    assert again["calls"] == 0 and again["answered"] == again["sources"]
    summed = json.loads(run("teacher", "calls", f"{out}/calls", "--json"))
    assert sum(row["calls"] for row in summed["answered"]) == report["calls"]
    assert summed["booked"] == pytest.approx(report["cost"])


def test_a_budget_ends_a_build_that_goes_on_when_it_is_raised(
    sources: Path, server: TeacherServer, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(BudgetSpent, match=r"Raise teacher\.budget and run again with --resume"):
        built(sources, out, *asked(server, "teacher.budget=0.1"))
    assert 0 < Budget(out / "calls" / "ledger.jsonl", 1.0).spent <= 0.1
    before = len(server.paid)
    report = built(sources, out, *asked(server), resume=True)
    assert len(server.paid) == report.calls and before > 0


def test_other_sources_or_settings_are_refused(sources: Path, whole: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="add --resume"):
        built(sources, whole)
    with pytest.raises(BindingMismatch, match="started with other sources or settings"):
        built(sources, whole, "records.limits.section_tokens.max=100", resume=True)
    with pytest.raises(UsageError, match="is not a directory"):
        built(tmp_path, tmp_path / "out")
    (tmp_path / "bundles").mkdir()
    with pytest.raises(UsageError, match="holds no bundle"):
        built(tmp_path, tmp_path / "out")
    with pytest.raises(UsageError, match=r"no candidates\.jsonl or candidates\.yaml beside"):
        run("corpus", "build", str(tmp_path / "bundles"), "--out", str(tmp_path / "out"))
    with pytest.raises(UsageError, match=r"--batch needs teacher\.kind=endpoint"):
        run("corpus", "build", str(sources / "bundles"), "--out", str(tmp_path / "o"), "--batch")
    assert not (tmp_path / "out").exists() and not (tmp_path / "o").exists()


def test_a_corpus_without_an_accepted_source_says_so_and_keeps_the_reasons(
    sources: Path, tmp_path: Path
) -> None:
    strict = "sources.source_gates.citation_occurrences=1000"
    with pytest.raises(ContractBroken, match="was accepted and taught"):
        built(sources, tmp_path / "out", strict)
    lines = (tmp_path / "out" / "rejected.jsonl").read_text().splitlines()
    assert len(lines) == COUNT and sum("required: at least 1000" in line for line in lines) >= 39
