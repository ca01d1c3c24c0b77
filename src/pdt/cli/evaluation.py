"""`pdt eval`: run the protocol on a checkpoint, read its report."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from pdt.cli.options import AsJson, Out, Seed
from pdt.evaluation.protocol.settings import FEW_DOCUMENTS, MOST_DOCUMENTS, REPEATS
from pdt.model.names import as_written
from pdt.terms import Split

if TYPE_CHECKING:
    from pdt.evaluation.generate.runs import Watch
    from pdt.evaluation.report.results import Results

app = typer.Typer(help="Judge a checkpoint by the paper's protocol.", no_args_is_help=True)


@app.command("run")
def run(
    records: Annotated[Path, typer.Argument(help="A compiled corpus with held-out documents.")],
    model: Annotated[
        Path,
        typer.Option(
            "--model", parser=as_written, metavar="MODEL", help="A bus checkpoint or saved model."
        ),
    ],
    out: Out,
    self_only: Annotated[
        Path | None,
        typer.Option(
            "--self-only",
            parser=as_written,
            metavar="MODEL",
            help="The self-only checkpoint.",
            show_default=False,
        ),
    ] = None,
    documents: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Held-out documents to judge on.",
            show_default=f"all, at most {MOST_DOCUMENTS}",
        ),
    ] = None,
    few: Annotated[
        int, typer.Option(min=2, help="Of these, for destructive controls and harder gates.")
    ] = FEW_DOCUMENTS,
    repeats: Annotated[int, typer.Option(min=1, help="How often each way of writing is timed.")] = (
        REPEATS
    ),
    batch: Annotated[int, typer.Option(min=2, help="Documents written side by side.")] = 32,
    plan: Annotated[
        str, typer.Option(help="learned or oracle: what every other condition starts from.")
    ] = "learned",
    conditions: Annotated[
        list[str] | None,
        typer.Option("--condition", help="Only this condition; repeat.", show_default=False),
    ] = None,
    split: Annotated[Split, typer.Option(help="The split to judge on.")] = Split.TEST,
    screen: Annotated[
        str,
        typer.Option(
            help="exact (Chronicle), prose (real text) or nli: whose judgments the tables use."
        ),
    ] = "exact",
    nli: Annotated[
        str | None,
        typer.Option("--nli", help="A cross-encoder to screen with too.", show_default=False),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option("--calibration", help="Its frozen threshold.", show_default=False),
    ] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 10_000,
    workers: Annotated[int, typer.Option(min=1, help="Processes that share the batches.")] = 1,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Write under every condition, score, and report. Exit code 1 when a gate is unmet.

    The same command goes on where a killed one stopped.
    """
    from pdt.evaluation.evaluate import evaluate
    from pdt.evaluation.generate.open import Asked
    from pdt.evaluation.protocol.conditions import Weights
    from pdt.evaluation.report.write import all_met
    from pdt.evaluation.screens.screen import ScreenChoice

    one_of("--plan", plan, ("learned", "oracle"))
    control = {} if self_only is None else {Weights.SELF_ONLY: self_only}
    asked = Asked(
        records,
        {Weights.BUS: model, **control},
        split=split,
        screens=ScreenChoice(screen, nli, calibration),
        documents=documents,
        settings={
            "few_documents": few,
            "repeats": repeats,
            "batch": batch,
            "plan": plan,
            "conditions": tuple(conditions or ()),
            "seed": seed,
            "resamples": resamples,
        },
    )
    with _progress() as watched:
        results = evaluate(asked, out, workers=workers, watched=watched)
    _show(results, out, as_json)
    if not all_met(results.gates):
        raise typer.Exit(1)


@app.command("calibrate")
def calibrate(
    records: Annotated[Path, typer.Argument(help="A compiled corpus, disjoint from the judged.")],
    nli: Annotated[str, typer.Option("--nli", help="A cross-encoder's directory, or canonical.")],
    out: Annotated[Path, typer.Option("--out", help="The calibration file to write, once.")],
    split: Annotated[Split, typer.Option(help="train or validation.")] = Split.VALIDATION,
    documents: Annotated[int, typer.Option(min=1, help="Documents of teacher prose.")] = 64,
) -> None:
    """Choose the NLI screen's threshold on teacher prose; it is frozen from then on."""
    from functools import partial

    from pdt.evaluation.generate.batches import teacher_prose
    from pdt.evaluation.screens.calibration import calibrate, freeze, refuse_frozen
    from pdt.evaluation.screens.nli import evidence_scores, load_cross_encoder
    from pdt.records.batch import RecordShards
    from pdt.tokenizer import load_tokenizer

    refuse_frozen(out)
    shards = RecordShards(records, split=split)
    prose = teacher_prose(
        shards, load_tokenizer(shards.config.records.tokenizer), documents=documents
    )
    encoder = load_cross_encoder(nli)
    found = calibrate(encoder.identity, partial(evidence_scores, encoder), prose)
    freeze(found, out)
    print(
        f"threshold {found.threshold:.4f} on {len(prose)} documents: finds {found.finds:.1%} of "
        f"what is there, refuses {found.refuses_hard_negatives:.1%} of hard negatives and "
        f"{found.refuses_absent:.1%} of absent facts"
    )


@app.command("nli-train")
def nli_train(
    data: Annotated[Path, typer.Argument(help="SNLI training pairs as JSON lines.")],
    test: Annotated[Path, typer.Option("--test", help="SNLI test pairs.")],
    encoder: Annotated[Path, typer.Option("--encoder", help="all-MiniLM-L6-v2 (make encoder).")],
    out: Out,
    pairs: Annotated[
        int, typer.Option(min=32, help="Training pairs, spread over the file.")
    ] = 8384,
    test_pairs: Annotated[int, typer.Option(min=1, help="Held-out pairs.")] = 1000,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fine-tune a small NLI cross-encoder, where the canonical one cannot be had."""
    from pdt.evaluation.screens.nli_train import train_cross_encoder
    from pdt.provenance import refuse_existing

    refuse_existing(out)
    summary = train_cross_encoder(
        data, test, encoder, out, pairs=pairs, test_pairs=test_pairs, seed=seed,
        watch=lambda line: typer.echo(line, err=True),
    )  # fmt: skip
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        print(
            f"{out}: {summary['accuracy']:.1%} of {summary['test_pairs']} held-out pairs, after "
            f"{summary['pairs']} in {summary['seconds']:.0f} s"
        )


@app.command("report")
def report(
    directory: Annotated[Path, typer.Argument(help="A directory of `pdt eval run`.")],
    audit: Annotated[
        Path | None,
        typer.Option(help="A directory of `pdt audit close`.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="With --audit: a new directory.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the gates of a finished evaluation. Exit code 1 when one is unmet.

    With an audit, adjudicated rates stand beside the screened ones and decide the gates.
    """
    from pdt.errors import UsageError
    from pdt.evaluation.report.results import read_results
    from pdt.evaluation.report.write import all_met

    if audit is not None:
        from pdt.cli.audit import show_final

        show_final(directory, audit, out, as_json)
        return
    if out is not None:
        raise UsageError("--out is for the final rates: give --audit too.")
    results = read_results(directory)
    _show(results, directory, as_json)
    if not all_met(results.gates):
        raise typer.Exit(1)


def verify(
    directory: Annotated[
        Path,
        typer.Argument(
            help="A directory of `pdt eval run`, `pdt eval report --audit` or `pdt screen report`."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Compute an evaluation's tables again from what it stored; what does not fit is refused.

    Final rates are computed again from the votes, a screen's report from its runs.
    """
    from pdt.errors import UsageError
    from pdt.evaluation.protocol.evidence_gates import Verdict
    from pdt.evaluation.report.shown import verdict_line
    from pdt.evaluation.verify.verify import verify_results

    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory. Give one of `pdt eval run`.")
    if (directory / "adjudicated.json").exists():
        from pdt.cli.audit import verify_final_rates

        verify_final_rates(directory, as_json)
        return
    if (directory / "report.svg").exists():
        from pdt.cli.screen import verify_screen_report

        verify_screen_report(directory, as_json)
        return
    verified = verify_results(directory)
    results, judged = verified.results, verified.judged_again
    met, left_out = (
        sum(gate.verdict is verdict for gate in results.gates)
        for verdict in (Verdict.MET, Verdict.NOT_APPLICABLE)
    )
    summary = {
        "directory": str(directory),
        "measures": len(results.measures),
        "judgments_made_again": judged,
        "gates_met": met,
        "gates": len(results.gates),
        "gates_not_applicable": left_out,
        "rates": "screened",
        "taken_as_it_is": verified.taken,
    }
    if as_json:
        print(json.dumps(summary, indent=2))
        return
    print(
        f"{directory} is whole: {summary['measures']} measures follow from its lines, {judged} "
        f"judgments were made again. {verdict_line(results)}\n"
        f"Its rates are screened ({results.settings.screen}), not adjudicated."
    )
    for line in verified.taken:
        print(line)


def one_of(flag: str, value: str, known: tuple[str, ...]) -> None:
    from pdt.errors import UsageError

    if value not in known:
        raise UsageError(f"{flag} is {value!r}; give {' or '.join(known)}.")


@contextmanager
def _progress() -> "Iterator[Callable[[int], Watch]]":
    """A bar that begins again with every count of runs to come."""
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
        task = bar.add_task("reading", total=None)

        def watched(runs: int) -> "Watch":
            bar.reset(task, total=runs)
            return lambda label, done: bar.update(task, description=label, advance=done)

        yield watched


def _show(results: "Results", out: Path, as_json: bool) -> None:
    from pdt.evaluation.report.shown import gate_row, verdict_line

    if as_json:
        print(json.dumps(results.model_dump(mode="json"), indent=2, ensure_ascii=False))
        return
    table = Table("evidence", "measured", "asked for", "verdict", box=None, pad_edge=False)
    styles = {"met": "green", "UNMET": "red"}
    last = ""
    for judged in results.gates:
        question, name, measured, asked, _, verdict = gate_row(judged, results.settings.documents)
        if question != last:
            table.add_row(f"[bold]{question}[/]")
        last = question
        style = styles.get(verdict, "yellow")
        table.add_row(f"  {name}", measured, asked, f"[{style}]{verdict}[/]")
    Console().print(table)
    print(verdict_line(results))
    print(out)
