"""`pdt audit serve`: the pages on an address, until it is told to stop."""

import socket
from collections.abc import Callable

from pdt.audit.store.audits import audit_row
from pdt.audit.store.database import Database
from pdt.audit.web.app import audit_app
from pdt.errors import UsageError
from pdt.web.keys import is_loopback
from pdt.web.run import server_of


def serve_audit(
    database: Database, *, host: str, port: int, https: str | None, say: Callable[[str], None]
) -> None:
    """Serve until interrupted; passphrases never cross a network in the open."""
    if not is_loopback(host) and https is None:
        raise UsageError(
            f"--host {host} would send passphrases over the network in the open.\n"
            "Stay on 127.0.0.1 with a proxy that speaks HTTPS before it, and give --https NAME."
        )
    with database.reading() as session:
        audit_row(session)
    listening = listen(host, port)
    name = f"https://{https}" if https else f"http://{host}:{listening.getsockname()[1]}"
    say(f"The audit is at {name}")
    server_of(audit_app(database, host=host, https=https), host=host, port=port).run([listening])


def listen(host: str, port: int) -> socket.socket:
    """A socket on the address, or why there is none."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.socket(family)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
    except OSError as error:
        raise UsageError(f"{host}:{port} cannot be used: {error}.\nGive another --port.") from error
    return found
