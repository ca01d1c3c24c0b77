"""`pdt teacher`: look at what a language model is asked, and at what was answered and paid."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from pdt.cli.options import AsJson, ConfigFile, Overrides, Preset, chosen
from pdt.errors import UsageError
from pdt.terms import TeacherPass

app = typer.Typer(help="The teacher's prompts and its answered calls.", no_args_is_help=True)


@app.command()
def prompt(
    teacher_pass: Annotated[TeacherPass, typer.Argument(help="Which of the two passes.")],
    preset: Preset = "canonical",
    config: ConfigFile = None,
    set_: Overrides = None,
    schema: Annotated[bool, typer.Option("--schema", help="The reply's JSON Schema.")] = False,
) -> None:
    """Print a prompt as it is sent, with the contract's numbers in it, or the reply's schema."""
    from pdt.teacher.drafts import AnswerDraft, FactsDraft, reply_schema
    from pdt.teacher.prompts import instructions

    if schema:
        draft = FactsDraft if teacher_pass is TeacherPass.EXTRACT_FACTS else AnswerDraft
        print(json.dumps(reply_schema(draft), indent=2))
        return
    print(instructions(teacher_pass, chosen(preset, config, set_)), end="")


@app.command()
def calls(
    directory: Annotated[Path, typer.Argument(help="A directory of calls, such as OUT/calls.")],
    as_json: AsJson = False,
) -> None:
    """Sum up answered calls by pass and attempt, and the ledger of what may have been billed."""
    from pdt.teacher.budget import LEDGER, Budget
    from pdt.teacher.journal import Journal

    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory.\nGive the calls of a corpus build.")
    rows: dict[tuple[str, int], dict[str, float]] = {}
    for transcript in Journal(directory).transcripts():
        call, reply = transcript.call, transcript.reply
        row = rows.setdefault(
            (str(call.teacher_pass), call.attempt),
            {"calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0},
        )
        row["calls"] += 1
        row["input_tokens"] += reply.input_tokens
        row["output_tokens"] += reply.output_tokens
        row["cost"] += reply.cost
    ledger = directory / LEDGER
    booked = Budget(ledger, float("inf")).spent if ledger.exists() else 0.0
    listed: list[dict[str, Any]] = [
        {"pass": name, "attempt": attempt, **row} for (name, attempt), row in sorted(rows.items())
    ]
    if as_json:
        print(json.dumps({"answered": listed, "booked": booked}, indent=2))
        return
    print(f"{'pass':<15} attempt     calls      sent  received      cost")
    for row in listed:
        print(
            f"{row['pass']:<15} {row['attempt']:>7} {row['calls']:>9,} {row['input_tokens']:>9,} "
            f"{row['output_tokens']:>9,} {row['cost']:>9.4f}"
        )
    answered = sum(row["cost"] for row in listed)
    print(f"answered {answered:.4f}; booked with what may have been billed {booked:.4f}")
