"""A real PostgreSQL in a temporary directory, as a user that is not root."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

BINARIES = ("/usr/local/bin", *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin"))))
USER = "nobody"


def postgres_binaries() -> Path | None:
    """Where `initdb` and `pg_ctl` lie, or None."""
    for folder in BINARIES:
        if all((Path(folder) / name).is_file() for name in ("initdb", "pg_ctl", "postgres")):
            return Path(folder)
    return None


class Postgres:
    """A server on a socket of its own directory; it can be stopped and started again."""

    def __init__(self, binaries: Path, directory: Path) -> None:
        self._binaries, self._directory = binaries, directory
        self._databases = 0
        if os.getuid() == 0:
            account = pwd.getpwnam(USER)
            os.chown(directory, account.pw_uid, account.pw_gid)
        self._run("initdb", "-D", str(directory / "data"), "-U", "pdt", "-A", "trust", "-N")

    def start(self) -> None:
        options = f"-c listen_addresses='' -k {self._directory} -F -c max_connections=60"
        self._run(
            "pg_ctl", "-D", str(self._directory / "data"), "-w", "-o", options,
            "-l", str(self._directory / "log"), "start",
        )  # fmt: skip

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self._directory / "data"), "-m", "immediate", "-w", "stop")

    def new_database(self) -> str:
        """The URL of an empty database."""
        import psycopg

        self._databases += 1
        name = f"audit{self._databases}"
        where = f"host={self._directory} user=pdt dbname=postgres"
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://pdt@/{name}?host={self._directory}"

    def _run(self, name: str, *arguments: str) -> None:
        command = [str(self._binaries / name), *arguments]
        if os.getuid() == 0:
            runuser = shutil.which("runuser") or "runuser"
            command = [runuser, "-u", USER, "--", *command]
        # Its output goes to a file: the server would keep a pipe open for ever.
        with (self._directory / "pg_ctl.log").open("ab") as log:
            subprocess.run(
                command, check=True, stdout=log, stderr=log, timeout=120, cwd=self._directory
            )


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Not in pytest's own directories: those are closed to the user that the server runs as."""
    binaries = postgres_binaries()
    assert binaries is not None
    with TemporaryDirectory(prefix="pdt-postgres-") as name:
        server = Postgres(binaries, Path(name))
        server.start()
        try:
            yield server
        finally:
            server.stop()
