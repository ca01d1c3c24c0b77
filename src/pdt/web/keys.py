"""Who may ask: API keys from the environment or a file, compared in constant time."""

import base64
import binascii
import hashlib
import hmac
import ipaddress
import os
from pathlib import Path

from pdt.errors import UsageError

LONGEST_KEY = 512
SHORTEST_KEY = 16
VARIABLE = "PDT_API_KEY"


class Keys:
    """Digests of the keys; the keys themselves are not kept."""

    def __init__(self, keys: list[str]) -> None:
        for key in keys:
            if not SHORTEST_KEY <= len(key) <= LONGEST_KEY or not key.isascii():
                raise UsageError(
                    f"An API key has {SHORTEST_KEY} to {LONGEST_KEY} ASCII characters. "
                    "Make one with `openssl rand -hex 24`."
                )
        self._digests = {name: _digest(key) for name, key in _named(keys)}

    def __bool__(self) -> bool:
        return bool(self._digests)

    def holder(self, authorization: str | None) -> str | None:
        """The name of the key in an `Authorization` header; None where there is no good one.

        Every key is compared, whichever fits: the time does not tell which.
        """
        given = _given(authorization)
        found = None
        asked = _digest(given or "")
        for name, digest in self._digests.items():
            if hmac.compare_digest(asked, digest) and given:
                found = name
        return found


def read_keys(file: Path | None) -> Keys:
    """Of a file, one key a line, or of the environment; none where neither is given."""
    if file is None:
        key = os.environ.get(VARIABLE, "").strip()
        return Keys([key] if key else [])
    if not file.is_file():
        raise UsageError(f"{file} is not a file. Give one API key a line.")
    if file.stat().st_size > 1 << 20:
        raise UsageError(f"{file} has over 1 MB; it should hold one API key a line.")
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not text: {error}. Give one API key a line.") from error
    keys = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not keys:
        raise UsageError(f"{file} holds no API key. Give one a line.")
    return Keys(keys)


def require_key_for(host: str, keys: Keys) -> None:
    """Another host than this machine's own refuses to start without a key."""
    if not keys and not is_loopback(host):
        raise UsageError(
            f"--host {host} would open this server to others, and no API key is set.\n"
            f"Set {VARIABLE} or give --key-file, or stay on 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach the host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _named(keys: list[str]) -> list[tuple[str, str]]:
    return [(f"key-{index}", key) for index, key in enumerate(dict.fromkeys(keys))]


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def _given(authorization: str | None) -> str | None:
    """A Bearer token, or the password a browser was asked for."""
    if authorization is None or len(authorization) > 2 * LONGEST_KEY:
        return None
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            decoded = base64.b64decode(value, validate=True).decode("utf-8")
        except (binascii.Error, ValueError):
            return None
        return decoded.partition(":")[2]
    return None
