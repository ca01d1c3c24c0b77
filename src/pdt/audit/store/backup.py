"""A backup is the whole audit in another database: a copy that can be served, or copied back."""

from sqlalchemy import insert, select
from sqlalchemy.engine import Connection

from pdt.audit.store.chain import head_of, read_votes
from pdt.audit.store.database import Database
from pdt.audit.store.schema import AuditRow, Base
from pdt.errors import ContractBroken, UsageError

AT_ONCE = 1000


def copy_database(source: Database, to: str) -> tuple[int, str]:
    """Copy everything in one consistent view, then follow the copy's chain; votes and last link."""
    target = Database(to, new=True)
    try:
        with source.reading() as session:
            if session.get_bind().dialect.name == "postgresql":
                session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            before = head_of(session)
            with target.writing() as into:
                if into.scalar(select(AuditRow.id)) is not None:
                    raise UsageError("The database to copy to holds an audit.\nGive an empty one.")
                for table in Base.metadata.sorted_tables:
                    rows = [row._asdict() for row in session.execute(select(table))]
                    for start in range(0, len(rows), AT_ONCE):
                        into.execute(insert(table), rows[start : start + AT_ONCE])
                _restart_numbers(into.connection())
        with target.reading() as copied:
            read_votes(copied)
            if head_of(copied) != before:
                raise ContractBroken(
                    "The copy does not end with the link that the audit ends with.",
                    "Try again; if it happens again, check the disk.",
                )
        return before
    finally:
        target.close()


def _restart_numbers(connection: Connection) -> None:
    """PostgreSQL counts accounts apart from the table: go on after the copied ones."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            "SELECT setval(pg_get_serial_sequence('people', 'id'), "
            "coalesce((SELECT max(id) FROM people), 0) + 1, false)"
        )
