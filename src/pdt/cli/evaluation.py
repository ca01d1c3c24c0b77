"""`pdt eval`: run the protocol on a checkpoint, read its report."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from pdt.cli.options import AsJson, Out, Seed
from pdt.terms import Split

if TYPE_CHECKING:
    from pdt.evaluation.results import Results

app = typer.Typer(help="Judge a checkpoint by the paper's protocol.", no_args_is_help=True)


@app.command("run")
def run(
    records: Annotated[Path, typer.Argument(help="A compiled corpus with held-out documents.")],
    model: Annotated[Path, typer.Option("--model", help="A bus checkpoint or saved model.")],
    out: Out,
    self_only: Annotated[
        Path | None,
        typer.Option("--self-only", help="The self-only checkpoint.", show_default=False),
    ] = None,
    documents: Annotated[int, typer.Option(min=2, help="Held-out documents to judge on.")] = 256,
    batch: Annotated[int, typer.Option(min=2, help="Documents written side by side.")] = 32,
    plan: Annotated[
        str, typer.Option(help="learned or oracle: what every other condition starts from.")
    ] = "learned",
    conditions: Annotated[
        list[str] | None,
        typer.Option("--condition", help="Only this condition; repeat.", show_default=False),
    ] = None,
    split: Annotated[Split, typer.Option(help="The split to judge on.")] = Split.TEST,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 10_000,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Write under every condition, score, and report. Exit code 1 when a gate is unmet."""
    from pdt.errors import UsageError
    from pdt.evaluation.conditions import Weights
    from pdt.evaluation.exact import ExactScreen
    from pdt.evaluation.longform import LongformLimits
    from pdt.evaluation.report import all_met, conclude, write_report
    from pdt.evaluation.results import EvaluationSettings
    from pdt.evaluation.run import Evaluation, load_for_evaluation
    from pdt.provenance import MANIFEST, refuse_existing, sha256_file
    from pdt.records.batch import RecordShards
    from pdt.terms import NotesCondition

    refuse_existing(out)
    if plan not in ("learned", "oracle"):
        raise UsageError(f"--plan is {plan!r}; give learned or oracle.")
    shards = RecordShards(records, split=split)
    bus, digest = load_for_evaluation(model, NotesCondition.BUS)
    models, digests = {Weights.BUS: bus}, {"bus": digest}
    if self_only is not None:
        control, digest = load_for_evaluation(self_only, NotesCondition.SELF_ONLY)
        models[Weights.SELF_ONLY], digests["self_only"] = control, digest
    settings = EvaluationSettings(
        documents=documents,
        batch=batch,
        plan="learned" if plan == "learned" else "oracle",
        conditions=tuple(conditions or ()),
        max_tokens=shards.config.records.limits.section_tokens.max,
        longform=LongformLimits.of(shards.config),
        block_tokens=bus.config.lanes.block_tokens,
        window_blocks=bus.config.notes.window_blocks,
        seed=seed,
        resamples=resamples,
    )
    evaluation = Evaluation(shards, models, settings, {"exact": ExactScreen()})
    batches, coined = evaluation.batches()
    raw = _with_progress(evaluation, batches, coined)
    results = conclude(raw, settings, digests)
    write_report(
        out,
        raw,
        results,
        config={
            "settings": settings.model_dump(mode="json"),
            "model": bus.config.model_dump(mode="json"),
        },
        inputs={"records": sha256_file(records / MANIFEST), **digests},
    )
    _show(results, out, as_json)
    if not all_met(results.gates):
        raise typer.Exit(1)


@app.command("report")
def report(
    directory: Annotated[Path, typer.Argument(help="A directory of `pdt eval run`.")],
    as_json: AsJson = False,
) -> None:
    """Show the gates of a finished evaluation. Exit code 1 when one is unmet."""
    from pdt.evaluation.report import all_met
    from pdt.evaluation.results import read_results

    results = read_results(directory)
    _show(results, directory, as_json)
    if not all_met(results.gates):
        raise typer.Exit(1)


def _with_progress(evaluation, batches, coined):  # type: ignore[no-untyped-def]
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<40}"), BarColumn(), MofNCompleteColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("reading", total=evaluation.steps(batches, coined))

        def progress(label: str, documents: int) -> None:
            bar.update(task, description=label, advance=documents)

        evaluation.progress = progress
        return evaluation.run(batches, coined)


def _show(results: "Results", out: Path, as_json: bool) -> None:
    from pdt.evaluation.tables import gate_row

    if as_json:
        print(json.dumps(results.model_dump(mode="json"), indent=2, ensure_ascii=False))
        return
    table = Table("question", "evidence", "measured", "asked for", "source", "verdict")
    styles = {"met": "green", "UNMET": "red", "not measured": "yellow"}
    last = ""
    for judged in results.gates:
        question, *cells, verdict = gate_row(judged)
        shown = question if question != last else ""
        last = question
        table.add_row(shown, *cells, f"[{styles[verdict]}]{verdict}[/]")
    Console().print(table)
    print(out)
