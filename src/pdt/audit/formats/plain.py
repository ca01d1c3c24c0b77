"""CSV and JSON lines: a task a row with empty places for the answer; the same rows come back."""

import csv
import io
import json

from pdt.audit.formats.tasks import Answered, Task
from pdt.contract import parse_contract
from pdt.errors import UsageError

COLUMNS = ("id", "claim", "text", "answer", "sentence", "remark")
DANGEROUS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a cell that begins so for a formula; an apostrophe makes it text."""


def write_csv(tasks: list[Task]) -> str:
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    for task in tasks:
        text = "\n".join(f"[{n}] {s}" for n, s in enumerate(task.sentences, start=1))
        rows.writerow([task.id, _safe(task.claim), _safe(text), "", "", ""])
    return out.getvalue()


def read_csv(text: str, where: str) -> list[Answered]:
    """Rows without an answer are skipped."""
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    missing = {"id", "answer"} - set(rows.fieldnames or ())
    if missing:
        raise UsageError(f"{where} has no column {min(missing)!r}.\nGive the columns as exported.")
    try:
        return [_answered(dict(row), f"{where}:{rows.line_num}") for row in rows if row["answer"]]
    except csv.Error as error:
        raise UsageError(f"{where} is not CSV: {error}.\nSave it as UTF-8 CSV.") from error


def write_jsonl(tasks: list[Task]) -> str:
    return "".join(
        json.dumps(
            {
                "id": task.id,
                "claim": task.claim,
                "sentences": task.sentences,
                "answer": None,
                "sentence": None,
                "remark": "",
            },
            ensure_ascii=False,
        )
        + "\n"
        for task in tasks
    )


def read_jsonl(text: str, where: str) -> list[Answered]:
    """Lines without an answer are skipped."""
    votes = []
    for number, line in enumerate(text.splitlines(), start=1):
        place = f"{where}:{number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UsageError(f"{place} is not JSON: {error}.\nGive one object a line.") from error
        if not isinstance(row, dict):
            raise UsageError(f"{place} is not an object.\nGive one object a line.")
        if row.get("answer") is not None:
            votes.append(_answered(row, place))
    return votes


def _answered(row: dict[str, object], where: str) -> Answered:
    kept = {
        name: row[name]
        for name in Answered.model_fields
        if row.get(name) is not None and row[name] != ""
    }
    return parse_contract(Answered, kept, where=where, remedy="docs/audit.md says what is taken.")


def _safe(cell: str) -> str:
    return f"'{cell}" if cell.startswith(DANGEROUS) else cell
