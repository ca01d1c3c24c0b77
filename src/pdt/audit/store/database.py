"""Opening a database by URL, its migrations, and the two kinds of transaction.

Everything that adds a vote holds one lock from reading the last link to adding the next: SQLite's
write lock, or PostgreSQL's lock on the audit's row. A transaction is whole or has not been.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.orm import Session

from pdt.audit.store.schema import AuditRow
from pdt.errors import UsageError

BUSY_SECONDS = 30
WRITES = "pdt_writes"


class Database:
    """One audit's database."""

    def __init__(self, url: str, *, new: bool = False) -> None:
        self.url = parse_url(url)
        if self.url.get_backend_name() == "sqlite":
            _check_file(self.url, new=new)
        self.engine = _engine(self.url)
        with _reachable(self.url):
            _migrate(self.engine)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One consistent view of what is stored."""
        with self.engine.connect() as connection, Session(connection) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Everything in it is stored together, after whoever wrote before; or nothing is."""
        with self.engine.connect() as connection:
            connection = connection.execution_options(**{WRITES: True})
            with Session(connection) as session, session.begin():
                session.execute(select(AuditRow.id).with_for_update())
                yield session

    def close(self) -> None:
        self.engine.dispose()


def parse_url(text: str) -> URL:
    """A database URL; a plain path is a SQLite file."""
    if "://" not in text:
        text = f"sqlite:///{text}"
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise UsageError(f"--db {text!r} is no database URL: {error}\n{_FORMS}") from error
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite" or not url.database or url.database == ":memory:":
        raise UsageError(f"--db {url.render_as_string()!r} is not taken.\n{_FORMS}")
    return url


_FORMS = "Give a file, sqlite:///FILE or postgresql://USER@HOST/NAME."


def _check_file(url: URL, *, new: bool) -> None:
    path = Path(url.database or "")
    if not new:
        if not path.is_file():
            raise UsageError(f"There is no audit at {path}.\nMake one with `pdt audit open`.")
        return
    if path.exists():
        raise UsageError(f"{path} exists.\nChoose another --db; an audit is never written over.")
    path.parent.mkdir(parents=True, exist_ok=True)
    # It holds the key that blinds the queue: nobody else on this machine reads it.
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        # A pooled connection may have died with the server: it is asked before it is used.
        return create_engine(
            url, pool_pre_ping=True, pool_size=10, connect_args={"connect_timeout": 5}
        )
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say, below
        for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {setting}")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def _reachable(url: URL) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        shown = url.render_as_string(hide_password=True)
        raise UsageError(
            f"{shown} cannot be used: {str(error.orig).strip()}\n"
            "Is the server up, and is it a database of `pdt audit open`?"
        ) from error


def _migrate(engine: Engine) -> None:
    """Bring the tables to this version; a database of a newer pdt is refused."""
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    config = Config()
    folder = Path(str(resources.files("pdt.audit.store"))) / "migrations"
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
        found = None
        if inspect(connection).has_table("alembic_version"):
            found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        if found == ScriptDirectory.from_config(config).get_current_head():
            return
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise UsageError(
                f"The database was made by another version of pdt ({found}): {error}\n"
                "Use that version, or a newer one."
            ) from error
