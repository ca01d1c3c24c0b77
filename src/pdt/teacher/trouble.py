"""What a server does wrong is one of two things: try again, or give up; never with the key."""

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from pdt.errors import PdtError
from pdt.teacher.secret import Secret

T = TypeVar("T")
_MALFORMED = ValueError | AttributeError | TypeError
"""What the SDK stumbles over when a server's reply is not of the protocol."""


class TeacherFailed(PdtError):
    """The server cannot be used: it refused the call, or failed too often."""


class TryAgain(Exception):
    """This try failed; `billed` when the server may still charge for it."""

    def __init__(self, why: str, *, billed: bool, wait: float = 0.0) -> None:
        super().__init__(why)
        self.billed = billed
        self.wait = wait


def guarded(secret: Secret, do: Callable[[], T]) -> T:
    """`do()`; the SDK's errors become ours, and none of theirs, which may hold the key, is kept."""
    try:
        return do()
    except (TryAgain, PdtError):
        raise
    except Exception as error:
        trouble = _trouble(error, secret)
        if trouble is None:
            raise
    raise trouble


def _trouble(error: Exception, secret: Secret) -> Exception | None:
    import httpx2
    import openai

    if isinstance(error, openai.APIStatusError):
        return _status(error, secret)
    if isinstance(error, openai.APITimeoutError):
        return TryAgain("the server took too long", billed=True)
    if isinstance(error, openai.APIConnectionError):
        never_sent = isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
        why = "the server cannot be reached" if never_sent else "the connection broke"
        return TryAgain(why, billed=not never_sent)
    if isinstance(error, openai.OpenAIError | httpx2.HTTPError | LookupError | _MALFORMED):
        return TryAgain(f"the reply cannot be read ({type(error).__name__})", billed=True)
    return None


def _status(error: Any, secret: Secret) -> Exception:
    status, wait = error.status_code, retry_after(error.response.headers)
    if status == 429 and getattr(error, "code", None) != "insufficient_quota":
        return TryAgain("the server is busy (429)", billed=False, wait=wait)
    if status in (408, 409) or status >= 500:
        return TryAgain(f"the server failed ({status})", billed=False, wait=wait)
    return TeacherFailed(
        f"The teacher's server refused the call ({status}): "
        f"{secret.hide(str(error.message))[:300]}\n"
        "Look at teacher.endpoint: base_url, model, parameters, and the key in the environment."
    )


def retry_after(headers: Any, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float:
    """The seconds that a server asks to wait, in either of the header's forms."""
    value = headers.get("retry-after")
    if value is None:
        return 0.0
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - now()).total_seconds())
    except (TypeError, ValueError):
        return 0.0
