"""`pdt audit`: people judge a verdict, blinded, from the queue to the final rates."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from pdt.cli.options import AsJson, Out

if TYPE_CHECKING:
    from pdt.audit.store.database import Database
    from pdt.evaluation.report.shown import Table as ReportTable

app = typer.Typer(
    help="Judge a verdict by people: blinded, twice, adjudicated.", no_args_is_help=True
)
Db = Annotated[
    str,
    typer.Option(
        "--db",
        envvar="PDT_AUDIT_DB",
        help="A SQLite file, sqlite:///FILE or postgresql://USER@HOST/NAME.",
    ),
]
Verdict = Annotated[Path, typer.Argument(help="A directory of `pdt eval run`.")]


@app.command("open")
def open_(
    verdict: Verdict,
    db: Db,
    name: Annotated[str, typer.Option(help="What people see at the top of the page.")] = "Audit",
    conditions: Annotated[
        list[str] | None,
        typer.Option("--condition", help="Only this condition; repeat.", show_default=False),
    ] = None,
    documents: Annotated[
        int | None, typer.Option(min=1, help="Draw this many documents.", show_default="all")
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(min=1, help="Draw this many plan nodes of each.", show_default="all"),
    ] = None,
    seats: Annotated[int, typer.Option(min=2, help="Annotators; two judge each item.")] = 2,
    training: Annotated[
        Path | None,
        typer.Option(help="Examples with known answers.", show_default="those of the package"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Make the queue of a finished evaluation, and seal it."""
    _require()
    from pdt.audit.answers import Purpose
    from pdt.audit.opening import AuditAsked, open_audit

    asked = AuditAsked(
        name, tuple(conditions or ()), documents, nodes, seats=seats, seed=seed, training=training
    )
    queue = open_audit(verdict, db, asked)
    each = round(len(queue.items) * 2 / seats * (1 + queue.plan.repeat_share))
    summary = {
        "items": len(queue.items),
        "documents": len(queue.plan.documents),
        "conditions": list(queue.plan.conditions),
        "seats": seats,
        "items_of_a_seat": each,
    }
    if as_json:
        print(json.dumps(summary, indent=2))
        return
    print(
        f"{summary['items']} items: {len(queue.plan.documents)} of "
        f"{queue.plan.documents_of_verdict} documents, conditions "
        f"{', '.join(queue.plan.conditions)}.\n"
        f"Each of {seats} annotators has about {each} to judge ({Purpose.REPEAT}s included), "
        f"{each / 10 / 60:.1f} hours at ten a minute.\n"
        f"Next: pdt audit invite NAME --role annotator --db {db}"
    )


@app.command("invite")
def invite(
    name: Annotated[str, typer.Argument(help="The account.")],
    db: Db,
    roles: Annotated[
        list[str], typer.Option("--role", help="annotator, adjudicator or operator; repeat.")
    ],
    replaces: Annotated[
        str | None,
        typer.Option(help="The annotator whose items are handed on.", show_default=False),
    ] = None,
    url: Annotated[
        str, typer.Option(help="Where people reach `pdt audit serve`.")
    ] = "http://127.0.0.1:8770",
    as_json: AsJson = False,
) -> None:
    """Make an account, or let it in again: prints a link that works once."""
    _require()
    from pdt.audit.answers import Role
    from pdt.audit.store.people import INVITATION_DAYS
    from pdt.audit.store.people import invite as invited
    from pdt.cli.evaluation import one_of

    for role in roles:
        one_of("--role", role, tuple(Role))
    database = _open(db)
    with database.writing() as session:
        token = invited(session, name, [Role(role) for role in roles], replaces=replaces)
    link = f"{url.rstrip('/')}/invitation/{token}"
    if as_json:
        print(json.dumps({"name": name, "roles": roles, "link": link}))
        return
    print(f"{link}\nFor {name}, once, within {INVITATION_DAYS} days. Send it to nobody else.")


@app.command("status")
def status(db: Db, as_json: AsJson = False) -> None:
    """What is done and what is missing. No answer is shown while the audit is open."""
    _require()
    from pdt.audit.status import status_of

    with _open(db).reading() as session:
        found = status_of(session)
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    state = f"closed {found.closed_at}" if found.closed_at else "open"
    print(f"{found.name}: {state}, {found.decided} of {found.items} items decided")
    print(f"{found.waiting} wait for an adjudicator")
    for person in found.people:
        work = (
            f"{person.done} of {person.total}"
            if person.total is not None
            else f"{person.done} settled"
            if "adjudicator" in person.roles
            else "–"
        )
        print(f"  {person.name:<24} {' '.join(person.roles):<24} {work:<14} {person.state}")
    print(f"{found.votes} votes, last link {found.head}")


@app.command("serve")
def serve(
    db: Db,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for a free one.")] = 8770,
    https: Annotated[
        str | None,
        typer.Option(help="The name under which a proxy serves it by HTTPS.", show_default=False),
    ] = None,
) -> None:
    """Serve the pages on which people judge."""
    _require()
    from pdt.audit.web.serve import serve_audit

    serve_audit(_open(db), host=host, port=port, https=https, say=typer.echo)


@app.command("close")
def close(
    verdict: Verdict,
    db: Db,
    out: Out,
    as_json: AsJson = False,
) -> None:
    """Seal a finished audit and write it out; no vote is taken after this."""
    _require()
    from pdt.audit.agreement import CAUTION
    from pdt.audit.closing import close_audit
    from pdt.audit.report import work_tables

    audit = close_audit(_open(db), verdict, out)
    if as_json:
        print(audit.work.model_dump_json(indent=2))
        return
    for table in work_tables(audit.work):
        _print_table(table)
    print(f"{CAUTION}\n{out}")


@app.command("export")
def export(
    db: Db,
    person: Annotated[str, typer.Option(help="The annotator whose items are written.")],
    out: Annotated[Path, typer.Option("--out", help="A new file.")],
    format_: Annotated[str, typer.Option("--format", help="label-studio, csv or jsonl.")],
) -> None:
    """Write what an annotator has left to judge, blinded, for another tool."""
    _require()
    from pdt.audit.formats.exchange import export_tasks

    with _open(db).reading() as session:
        count = export_tasks(session, person, out, format_)
    print(f"{count} items of {person} in {out}")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="Votes from another tool.")],
    db: Db,
    person: Annotated[str, typer.Option(help="The annotator who gave them.")],
    format_: Annotated[str, typer.Option("--format", help="label-studio, csv or jsonl.")],
) -> None:
    """Take an annotator's votes from another tool: all of them, checked, or none."""
    _require()
    from pdt.audit.formats.exchange import import_votes

    with _open(db).writing() as session:
        counted, before = import_votes(session, person, file, format_)
    print(f"{counted} votes of {person} counted, {before} had been counted before")


@app.command("backup")
def backup(
    db: Db,
    to: Annotated[str, typer.Option(help="A new SQLite file, or an empty database.")],
) -> None:
    """Copy the whole audit to another database, which can be served as it is; checks the chain."""
    _require()
    from pdt.audit.store.backup import copy_database

    votes, head = copy_database(_open(db), to)
    print(f"{votes} votes copied, last link {head}")


def show_final(verdict: Path, audit: Path, out: Path | None, as_json: bool) -> None:
    """`pdt eval report --audit`: screened and adjudicated rates side by side."""
    _require()
    from pdt.audit.adjudicated.report import facts_of_audit, gate_table
    from pdt.audit.adjudicated.write import finish, write_final
    from pdt.evaluation.report.write import all_met
    from pdt.provenance import refuse_existing

    if out is not None:
        refuse_existing(out)
    final = finish(verdict, audit)
    if out is not None:
        write_final(out, verdict, audit, final)
    if as_json:
        print(final.adjudicated.model_dump_json(indent=2))
    else:
        documents, sampled = (
            final.results.settings.documents,
            len(final.audit.closed.plan.documents),
        )
        _print_table(gate_table(final.adjudicated, documents, sampled))
        for fact in facts_of_audit(final.adjudicated, final.audit):
            print(fact)
        print(f"{len(final.differences)} items on which people and the screen differ")
        if out is not None:
            print(out)
    if not all_met(tuple(row.final for row in final.adjudicated.gates)):
        raise typer.Exit(1)


def verify_final_rates(directory: Path, as_json: bool) -> None:
    """`pdt verify` on what `pdt eval report --audit --out` wrote."""
    _require()
    from pdt.audit.adjudicated.verify import verify_final
    from pdt.evaluation.protocol.evidence_gates import Verdict as GateVerdict

    final = verify_final(directory)
    gates = final.adjudicated.gates
    summary = {
        "directory": str(directory),
        "rates": final.adjudicated.rates,
        "measures": len(final.adjudicated.measures),
        "votes": final.audit.closed.votes,
        "items": len(final.audit.queue.items),
        "gates_met": sum(row.final.verdict is GateVerdict.MET for row in gates),
        "gates": len(gates),
        "taken_as_it_is": final.verified.taken,
    }
    if as_json:
        print(json.dumps(summary, indent=2))
        return
    print(
        f"{directory} is whole: its rates are adjudicated; {summary['measures']} of them follow "
        f"from {summary['votes']} votes on {summary['items']} items, and the screened ones from "
        f"the verdict's lines; {summary['gates_met']} of {summary['gates']} gates are met."
    )
    for line in final.verified.taken:
        print(line)


def _print_table(table: "ReportTable") -> None:
    title, headings, rows = table
    shown = Table(*headings, title=title, title_justify="left", box=None, pad_edge=False)
    for row in rows:
        shown.add_row(*row)
    Console().print(shown)


def _open(db: str) -> "Database":
    from pdt.audit.store.database import Database

    return Database(db)


def _require() -> None:
    from importlib.util import find_spec

    from pdt.errors import UsageError

    missing = [name for name in ("sqlalchemy", "alembic", "fastapi") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"An audit needs {', '.join(missing)}.\nInstall the extra: pip install 'pdt[audit]'"
        )
