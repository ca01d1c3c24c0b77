"""`pdt train`: run the curriculum, see where a run stands, draw what it did."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pdt.cli.options import AsJson, ConfigFile, Overrides, Preset, Seed, chosen
from pdt.config import PdtConfig
from pdt.errors import UsageError
from pdt.model.names import as_written

if TYPE_CHECKING:
    from pdt.training.loop import Trainer
    from pdt.training.watch.status import RunStatus

app = typer.Typer(help="Train by the curriculum, and watch it.", no_args_is_help=True)
Run = Annotated[Path, typer.Argument(help="The directory of a run.")]


@app.command("run")
def run(
    records: Annotated[Path, typer.Argument(help="A compiled corpus (see `pdt record compile`).")],
    out: Annotated[Path, typer.Option("--out", help="The run's directory.")],
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            parser=as_written,
            metavar="MODEL",
            help="Start from this saved model or checkpoint.",
            show_default=False,
        ),
    ] = None,
    preset: Preset = "canonical",
    config: ConfigFile = None,
    overrides: Overrides = None,
    seed: Seed = 0,
    until: Annotated[
        int | None, typer.Option("--until", help="Stop after this many steps.", show_default=False)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the run's newest whole checkpoint.")
    ] = False,
    pilot: Annotated[
        Path | None,
        typer.Option(help="The sealed pilot that canonical training asks for.", show_default=False),
    ] = None,
    pilot_waived: Annotated[
        str | None,
        typer.Option(help="Why there is none; it stands in the manifest.", show_default=False),
    ] = None,
    scale_audit: Annotated[
        Path | None,
        typer.Option(help="What a larger rung asks for: `pdt scale audit`.", show_default=False),
    ] = None,
    scale_override: Annotated[
        str | None,
        typer.Option(help="Why there is none; it stands in the manifest.", show_default=False),
    ] = None,
) -> None:
    """Train the planner, the lanes and the notes bus by the curriculum.

    Metrics go to metrics.jsonl and, for TensorBoard, to tensorboard/ in the run's directory. A
    killed run goes on with --resume.
    """
    from pdt.lock import hold_run
    from pdt.provenance import MANIFEST
    from pdt.records.batch import RecordShards
    from pdt.screen.gates import pilot_gate, scale_gate
    from pdt.terms import Split
    from pdt.training.loop import Trainer
    from pdt.training.preflight import check_stages
    from pdt.training.ranks import Ranks
    from pdt.training.watch.boards import check_boards

    ranks = Ranks()
    # Killed before its first checkpoint, a run begins again.
    again = resume and (out / MANIFEST).is_file() and not any(out.glob("step-*"))
    fresh = again or not resume
    with ExitStack() as held:
        with ranks.together():
            tree = chosen(preset, config, overrides)
            check_stages(tree)
            check_boards(tree)
            shards = RecordShards(records, split=Split.TRAIN)
            if resume and ranks.first and (again or any(out.glob("step-*"))):
                held.enter_context(hold_run(out))
            if not resume:
                _refuse_existing_run(out)
            if fresh:
                passed = pilot_gate(tree, pilot, pilot_waived)
                passed |= scale_gate(tree, scale_audit, scale_override)
                student, inputs = _start(model, tree, seed)
                inputs |= passed
        with _getting_ready(ranks.first) as telling:
            if fresh:
                trainer = Trainer(student, shards, out, inputs=inputs, ranks=ranks, telling=telling)
            else:
                trainer = Trainer.resume(shards, out, tree, ranks=ranks)
        if not resume:
            with ranks.together():
                if ranks.first:
                    held.enter_context(hold_run(out))
        if ranks.first:
            _train_watched(trainer, until)
            print(out)
        else:
            trainer.train(until)
    ranks.leave()


@app.command("status")
def status(
    run: Run,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check every byte of every checkpoint, not its size.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Where a run stands: while it goes, after its end, and after a kill."""
    from pdt.training.watch.status import read_status

    found = read_status(run, digests=verify)
    if as_json:
        print(json.dumps(asdict(found), indent=2))
    else:
        _print_status(found)


@app.command("plot")
def plot(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The picture; by default RUN/plot.png.", show_default=False),
    ] = None,
) -> None:
    """Draw losses, gates, codebooks and optimizer of a run, stage by stage."""
    from pdt.training.watch.plot import plot_run

    target = out or run / "plot.png"
    plot_run(run, target)
    print(target)


def _start(directory: Path | None, tree: PdtConfig, seed: int) -> tuple[Any, dict[str, Any]]:
    """The model to train, with a tokenizer, and what the run's manifest says of it."""
    from pdt.model.build import from_trunk, random_model
    from pdt.model.names import model_directory
    from pdt.model.store import load_model
    from pdt.provenance import MANIFEST, sha256_file
    from pdt.tokenizer import load_tokenizer

    inputs: dict[str, Any] = {"seed": seed}
    if directory is not None:
        directory = model_directory(directory)
        student = load_model(directory, expect=tree)
        student.config = tree
        inputs = {
            "model": {
                "directory": str(directory.resolve()),
                "manifest_sha256": sha256_file(directory / MANIFEST),
            }
        }
    elif tree.trunk.source is None:
        student = random_model(tree, seed=seed)
    else:
        student = from_trunk(config=tree, seed=seed)
    if student.tokenizer is None:
        student.tokenizer = load_tokenizer(tree.records.tokenizer)
    return student, inputs


@contextmanager
def _getting_ready(speaks: bool) -> Iterator[Callable[[str], None]]:
    """Something to look at before the first step: the first codes alone may take minutes."""
    if not speaks:
        yield lambda text: None
        return
    with Console(stderr=True).status("getting ready: checks") as status:
        yield lambda text: status.update(f"getting ready: {text}")


def _refuse_existing_run(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(
            f"{out} exists and is not empty.\n"
            "Go on with that run (--resume), or choose another --out."
        )


def _train_watched(trainer: "Trainer", until: int | None) -> None:
    from pdt.training.watch.bar import watched
    from pdt.training.watch.boards import open_boards
    from pdt.training.watch.metrics import Metrics, read_metrics

    console = Console(stderr=True)

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    config, step = trainer.model.config, trainer.progress.step
    for remark in (trainer.remark, trainer.held_out.missing):
        if remark is not None:
            say(remark)
    end = trainer.steps if until is None else min(trainer.steps, until)
    with ExitStack() as open_now:
        try:
            boards = open_boards(trainer.run, config, step, say)
        except UsageError:
            if step == 0:  # the directory is this run's alone: refused, it leaves nothing behind
                shutil.rmtree(trainer.run)
            raise
        for board in boards:
            open_now.callback(board.close)
        before = read_metrics(trainer.run)
        show = open_now.enter_context(watched(config.training, before, end, console))

        def watch(line: Metrics) -> None:
            for board in boards:
                board.take(line)
            show(line)

        trainer.train(until, watch=watch)
    if trainer.engine.trunk.cache is not None:
        say(trainer.engine.trunk.cache.describe())


def _print_status(found: "RunStatus") -> None:
    from pdt.training.watch.bar import evaluation_text, loss_text
    from pdt.training.watch.pace import spoken

    print(f"{found.run}: {found.state}, step {found.step:,} of {found.steps:,}")
    print(f"  stage          {found.stage} of 0–{found.stages - 1}, {found.plan} plans")
    if found.last_line is not None:
        print(f"  last step      {found.last_line}")
    if found.losses:
        print(f"  losses         {loss_text(found.losses)}")
    if found.tokens_per_second is not None and found.documents_per_second is not None:
        print(
            f"  speed          {found.tokens_per_second:,.0f} tokens/s, "
            f"{found.documents_per_second:,.1f} documents/s"
        )
    if found.seconds_left is not None:
        print(f"  left           {spoken(found.seconds_left)} at this speed")
    for line in found.evaluations:
        print(f"  evaluation     {evaluation_text(line)}")
    for point in found.checkpoints:
        print(f"  checkpoint     {point.name}: {point.damage or 'whole'}")
    for name in found.half_written:
        print(f"  half-written   {name}: --resume removes it")
    if found.state == "stopped":
        print(
            f"  goes on from   {found.resumes_from} with --resume"
            if found.resumes_from
            else "  goes on from   the beginning: there is no whole checkpoint"
        )
