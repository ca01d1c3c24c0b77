"""What `pdt serve` does: check everything that can be checked, listen, and load the model."""

import logging
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from pdt.config import parse_override
from pdt.errors import CRASHED, PdtError, UsageError
from pdt.generation.writer import Writer
from pdt.serve.app import build
from pdt.serve.limits import Limits
from pdt.web.keys import read_keys, require_key_for
from pdt.web.run import server_of


def run(
    model: Path,
    *,
    trunk: str | None,
    host: str,
    port: int,
    key_file: Path | None,
    overrides: Sequence[str],
    origins: Sequence[str],
    grace: float,
    say: Callable[[str], None],
) -> int:
    """Serve until SIGTERM or Ctrl-C; the exit code."""
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    keys = read_keys(key_file)
    require_key_for(host, keys)
    limits = limits_from(overrides)
    app, engine = build(
        lambda: Writer.load(model, trunk=trunk),
        model_name=model.name,
        host=host,
        keys=keys,
        limits=limits,
        origins=origins,
        grace=grace,
    )
    listening = _listen(host, port)
    server = server_of(
        app, host=host, port=port, connections=limits.connections, grace=int(grace) + 1
    )
    engine.on_failure = lambda: setattr(server, "should_exit", True)
    server.on_exit = engine.drain
    where = where_of(*listening.getsockname()[:2])
    say(f"pdt serves {model.name} at {where}{'' if keys else ', without a key'}")
    server.run(sockets=[listening])
    if isinstance(engine.error, PdtError):
        raise engine.error
    return 0 if engine.error is None else CRASHED


def limits_from(overrides: Sequence[str]) -> Limits:
    """Limits from `key=value` texts."""
    tree: dict[str, object] = {}
    for text in overrides:
        tree |= parse_override(text)
    try:
        return Limits.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"The limit {name} cannot be: {first['msg']} (value {first['input']!r}).\n"
            f"Known limits: {', '.join(Limits.model_fields)}."
        ) from error


def where_of(host: str, port: int) -> str:
    """The address as a browser takes it."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    """The socket, taken before the model is loaded: a port in use is said at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(512)
    except OSError as error:
        listening.close()
        raise UsageError(f"{host}:{port} cannot be listened on: {error.strerror}.") from error
    return listening
