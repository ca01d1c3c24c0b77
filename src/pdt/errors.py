"""Every way `pdt` refuses: what was wrong, what was expected, and what to do.

The command line prints the message alone and exits with `exit_code`: 2 for a wrong call, 3 for a
broken contract. 1 means an unmet evidence gate, 70 that the program itself has crashed.
"""

from collections.abc import Sequence

CRASHED = 70
"""The exit code of a crash, as sysexits.h has it."""


class PdtError(Exception):
    """A refusal with a remedy."""

    exit_code = 3


class PdtWarning(UserWarning):
    """Something a user should hear of that is no error; the command prints it in one line."""


class UsageError(PdtError):
    """The call itself is wrong: an unknown preset, a missing file, a flag out of range."""

    exit_code = 2


def require_type(value: object, kinds: type | tuple[type, ...], what: str, remedy: str) -> None:
    """Refuse an argument of another type, before code further in trips over it."""
    if not isinstance(value, kinds):
        raise UsageError(f"{what} is {type(value).__name__}, expected {remedy}.")


class ConfigError(UsageError):
    """A configuration that cannot be: names the path, the value and the remedy."""


class TrunkRefused(PdtError):
    """A model that is not one of the supported families, or whose files are not whole."""


class BusError(PdtError):
    """A commit that would break the barrier: twice, out of order, or for some lanes only."""


class BindingMismatch(PdtError):
    """A saved model that is not bound to what it is loaded for."""

    def __init__(
        self,
        what: str,
        rows: Sequence[tuple[str, object, object]],
        remedy: str,
        *,
        sides: tuple[str, str],
    ) -> None:
        width = max(len(name) for name, _, _ in rows)
        lines = [
            f"  {name:<{width}}   {sides[0]} {ours}   {sides[1]} {theirs}"
            for name, ours, theirs in rows
        ]
        super().__init__("\n".join([what, *lines, remedy]))


class TrainingStopped(PdtError):
    """A run that cannot go on: names the step, the reason and the last good checkpoint."""


class Followed(PdtError):
    """Another rank has stopped and says why; this one stops with it, in silence."""


class CorruptFile(PdtError):
    """A file that is truncated, tampered with, or not what its manifest says."""


class SourceRefused(PdtError):
    """Raw material that is not one whole revision in a form we read: names it, why, the remedy."""

    def __init__(self, where: str, why: str, remedy: str) -> None:
        super().__init__(f"{where} {why}.\n{remedy}")
        self.why = why


class FetchFailed(PdtError):
    """A source that could not be taken now and may be later: names what failed and how to go on."""


class ContractBroken(PdtError):
    """Stored data that is not what its schema says: names the file, the record and the remedy."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}\n{remedy}")


class AuditRefused(PdtError):
    """A step of an audit that cannot be taken; over HTTP it has a `status`."""

    def __init__(self, message: str, *, status: int = 409) -> None:
        super().__init__(message)
        self.status = status
