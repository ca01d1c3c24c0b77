"""The audit's database: SQLite and PostgreSQL, votes that are only added, people, backups."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError

from pdt.audit.answers import Role
from pdt.audit.judging import cast, next_item
from pdt.audit.opening import write_queue
from pdt.audit.store.backup import copy_database
from pdt.audit.store.chain import head_of, read_votes
from pdt.audit.store.database import Database
from pdt.audit.store.people import accept, invite, person_of, sign_in
from pdt.audit.store.schema import Base, TicketRow, VoteRow
from pdt.audit.web.app import audit_app
from pdt.errors import AuditRefused, ContractBroken, UsageError
from tests.support.audits import (
    KEY,
    PASSPHRASE,
    SHORT,
    invited,
    judge_all,
    small_audit,
    small_queue,
    team,
)
from tests.support.postgres import Postgres, postgres_binaries, running_postgres
from tests.support.web_server import serving

KINDS = ("sqlite", "postgresql")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    if postgres_binaries() is None:
        pytest.skip("no PostgreSQL server is installed (initdb, pg_ctl, postgres)")
    with running_postgres() as server:
        yield server


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        made = small_audit(tmp_path / "a.db", 1)
    else:
        server: Postgres = request.getfixturevalue("postgres")
        made = small_audit(server.new_database(), 1)
    yield made
    made.close()


def test_migrations_make_the_tables_that_the_code_declares(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Base.metadata) == []


def test_a_database_holds_one_audit_and_a_file_is_never_written_over(
    database: Database, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="holds an audit already"):
        write_queue(database, small_queue(1), SHORT, KEY)
    path = tmp_path / "other.db"
    small_audit(path, 1).close()
    with pytest.raises(UsageError, match="never written over"):
        Database(str(path), new=True)
    assert path.stat().st_mode & 0o077 == 0, "others could read the key"


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://", "nonsense://", "postgresql://:x@:y/z"])
def test_a_url_that_is_no_database_of_ours_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match=r"--db|cannot be used"):
        Database(url)


def test_a_database_of_a_newer_pdt_is_refused(tmp_path: Path) -> None:
    database = small_audit(tmp_path / "a.db", 1)
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    with pytest.raises(UsageError, match="another version of pdt"):
        Database(str(tmp_path / "a.db"))


def test_a_vote_can_be_neither_changed_nor_removed(database: Database) -> None:
    judge_all(database, invited(database, "Ann", Role.ANNOTATOR), most=5)
    for statement in ("UPDATE votes SET answer = 'yes'", "DELETE FROM votes"):
        with (
            pytest.raises(DBAPIError, match="only ever added"),
            database.engine.begin() as connection,
        ):
            connection.execute(text(statement))


CHANGES = [
    "UPDATE votes SET answer = 'contradicted' WHERE number = 3",
    "UPDATE votes SET remark = 'x', digest = 'y' WHERE number = 3",
    "DELETE FROM votes WHERE number = 3",
    "UPDATE audit SET seal = previous FROM votes WHERE votes.number = 2",
]


@pytest.mark.parametrize("change", CHANGES)
def test_whoever_takes_the_triggers_away_is_found_by_the_chain(tmp_path: Path, change: str) -> None:
    database = small_audit(tmp_path / "a.db", 1)
    judge_all(database, invited(database, "Ann", Role.ANNOTATOR), most=6)
    with database.engine.begin() as connection:
        connection.execute(text("DROP TRIGGER votes_update"))
        connection.execute(text("DROP TRIGGER votes_delete"))
        connection.execute(text(change))
    with database.reading() as session, pytest.raises(ContractBroken, match="vote"):
        read_votes(session)


def test_an_invitation_works_once_and_a_wrong_one_never(database: Database) -> None:
    with database.writing() as session:
        token = invite(session, "Ann", [Role.ANNOTATOR])
    with database.writing() as session, pytest.raises(AuditRefused, match="12 to 200"):
        accept(session, token, "short")
    with database.writing() as session:
        accept(session, token, PASSPHRASE)
    for wrong in (token, "", "x" * 400, token[:-1]):
        with database.writing() as session, pytest.raises(AuditRefused, match="not valid"):
            accept(session, wrong, PASSPHRASE)
    for name, passphrase in (("Ann", "wrong wrong wrong"), ("Nobody", PASSPHRASE), ("", "")):
        with database.writing() as session, pytest.raises(AuditRefused, match="do not fit"):
            sign_in(session, name, passphrase)


def test_another_invitation_ends_the_old_session_and_keeps_the_votes(database: Database) -> None:
    ann = invited(database, "Ann", Role.ANNOTATOR)
    judge_all(database, ann, most=5)
    with database.writing() as session:
        old = sign_in(session, "Ann", PASSPHRASE)
        unused = invite(session, "Ann", [Role.ANNOTATOR])
        token = invite(session, "Ann", [Role.ANNOTATOR])
    with database.writing() as session:
        assert person_of(session, old) is None
        with pytest.raises(AuditRefused, match="not valid"):
            accept(session, unused, PASSPHRASE)
        again = person_of(session, accept(session, token, PASSPHRASE))
        assert again is not None and again.id == ann.id
        assert head_of(session)[0] == 5
        with pytest.raises(AuditRefused, match="There is an account"):
            invite(session, "Ann", [Role.OPERATOR])


def test_a_seat_is_handed_on_with_what_is_left_of_it(database: Database) -> None:
    ann = invited(database, "Ann", Role.ANNOTATOR)
    invited(database, "Bob", Role.ANNOTATOR)
    with database.writing() as session, pytest.raises(AuditRefused, match="seats are taken"):
        invite(session, "Dora", [Role.ANNOTATOR])
    judge_all(database, ann, most=8)
    with database.writing() as session:
        token = invite(session, "Dora", [Role.ANNOTATOR], replaces="Ann")
    with database.writing() as session:
        dora = person_of(session, accept(session, token, PASSPHRASE))
    assert dora is not None and dora.seat == ann.seat
    judge_all(database, dora)
    with database.reading() as session:
        left = session.scalars(
            select(TicketRow).where(TicketRow.seat == ann.seat, TicketRow.answer.is_(None))
        )
        assert not list(left)
        assert {vote.person for vote in read_votes(session)} == {ann.id, dora.id}


def test_a_backup_is_an_audit_that_can_be_copied_back(
    database: Database, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    ann, _, _ = team(database)
    judge_all(database, ann, most=10)
    there = copy_database(database, str(tmp_path / "backup.db"))
    backup = Database(str(tmp_path / "backup.db"))
    targets = [str(tmp_path / "back.db")]
    if postgres_binaries() is not None:
        targets.append(request.getfixturevalue("postgres").new_database())
    for target in targets:
        assert copy_database(backup, target) == there
        back = Database(target)
        assert judge_all(back, ann, most=2) == 2
        invited(back, "Op", Role.OPERATOR)
        with back.reading() as session:
            assert len(read_votes(session)) == there[0] + 2
        back.close()
    with pytest.raises(UsageError, match=r"never written over|holds an audit"):
        copy_database(backup, targets[-1])


def test_twenty_clients_at_once_lose_nothing_and_count_nothing_twice(database: Database) -> None:
    ann = invited(database, "Ann", Role.ANNOTATOR)
    judge_all(database, ann, most=3)
    errors: list[BaseException] = []

    def click() -> None:
        try:
            for _ in range(2):
                with database.writing() as session:
                    shown = next_item(session, ann)
                assert shown is not None
                with database.writing() as session:
                    cast(session, ann, shown.ticket, shown.showing, "no", None, "")
        except BaseException as error:
            errors.append(error)

    clients = [threading.Thread(target=click) for _ in range(20)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(timeout=120)
    assert not errors
    with database.reading() as session:
        votes = read_votes(session)
        answered = session.scalars(select(TicketRow.id).where(TicketRow.answer.is_not(None)))
        assert len(votes) == len(set(answered)) <= 3 + 40
        assert len(votes) > 3


def test_a_server_killed_in_the_middle_of_a_vote_leaves_a_whole_chain(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    database = small_audit(path, 2)
    ann = invited(database, "Ann", Role.ANNOTATOR)
    script = (
        "import sys; from tests.support.audits import *\n"
        "from pdt.audit.store.chain import head_of\n"
        f"database = Database({str(path)!r})\n"
        f"person = Person({ann.id}, 'Ann', frozenset([Role.ANNOTATOR]), {ann.seat})\n"
        "for _ in range(60):\n"
        "    judge_all(database, person, most=1)\n"
        "    with database.reading() as session: print(head_of(session)[1], flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    seen = [child.stdout.readline().strip() for _ in range(10)]
    os.kill(child.pid, signal.SIGKILL)
    seen += [line.strip() for line in child.stdout if len(line) == 65]
    child.wait(timeout=30)
    with database.reading() as session:
        digests = list(session.scalars(select(VoteRow.digest).order_by(VoteRow.number)))
        read_votes(session)
    assert digests[: len(seen)] == seen
    assert judge_all(database, ann, most=3) == 3


def test_a_database_that_goes_away_and_returns_loses_no_counted_vote(postgres: Postgres) -> None:
    database = small_audit(postgres.new_database(), 1)
    ann = invited(database, "Ann", Role.ANNOTATOR)
    judge_all(database, ann, most=5)
    with database.reading() as session:
        before = head_of(session)
    with serving(audit_app(database)) as site:
        assert site.ask("GET", "/sign-in").status == 200
        postgres.stop()
        with pytest.raises(DBAPIError):
            judge_all(database, ann, most=1)
        away = site.ask("GET", "/sign-in", None, {"accept": "text/html"})
        assert away.status == 503 and "does not answer" in away.text
        assert "psycopg" not in away.text and "socket" not in away.text
        postgres.start()
        assert site.ask("GET", "/sign-in").status == 200
    assert judge_all(database, ann, most=1) == 1
    with database.reading() as session:
        votes = read_votes(session)
    assert votes[4].digest == before[1] and len(votes) == 6
