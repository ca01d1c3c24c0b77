"""The key of a server: read from the environment, shown to that server, and to nobody else."""

import os
import re

from pdt.errors import UsageError

HIDDEN = "[key]"
_SHORTEST = 8
"""A shorter value (`none`, for a server without keys) is a word and no secret."""


class Secret:
    """A key that no text can hold: neither its own, nor one that passes `hide`."""

    def __init__(self, value: str) -> None:
        self._value = value

    @classmethod
    def from_environment(cls, variable: str) -> "Secret":
        value = os.environ.get(variable, "").strip()
        if not value:
            raise UsageError(
                f"The environment variable {variable} is not set.\n"
                f"Give the server's key with `export {variable}=…` ('none' for a server without "
                "keys), or name another variable with --set teacher.endpoint.key_variable=NAME."
            )
        return cls(value)

    def reveal(self) -> str:
        """For the request to the server, and nothing else."""
        return self._value

    def hide(self, text: str) -> str:
        """`text` without the key, even where a server sent it back."""
        if len(self._value) < _SHORTEST:
            return text
        return re.sub(re.escape(self._value), HIDDEN, text, flags=re.IGNORECASE)

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a key is never written; each process reads it from the environment")
