"""A client that keeps Wikimedia's rules: named, slow, patient, and never led off its hosts.

Every request carries the operator's contact. At most three connections, a steady pace, `maxlag` on
the action API, `Retry-After` obeyed for all connections at once. Redirects are followed only to
Wikimedia. A cut, slow or failing answer is asked for again, a bounded number of times.

Paper: §4.1.
"""

import datetime
import email.utils
import re
import threading
import time
from collections.abc import Callable
from importlib import metadata
from urllib.parse import urljoin, urlsplit

import httpx2

from pdt.config import FetchConfig
from pdt.errors import FetchFailed, SourceRefused, UsageError
from pdt.sources.recorded import Recording
from pdt.sources.wikimedia import HOSTS, HttpAnswer, api_error

MOST_REDIRECTS = 3
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_WAIT_CODES = ("maxlag", "ratelimited", "readonly", "internal_api_error")
_CONTACT = re.compile(r"[^@\s<>()]+@[^@\s<>()]+\.[^@\s<>()]+|https?://[^\s<>()]+\.[^\s<>()]+")


def user_agent(contact: str | None) -> str:
    """`pdt/0.1 (someone@example.org) httpx2/2.16`, or a refusal: nobody else can be the contact."""
    if contact is None or not _CONTACT.fullmatch(contact):
        given = (
            "no contact is given" if contact is None else f"{contact!r} is no mail or web address"
        )
        raise UsageError(
            f"Wikimedia asks who is calling, and {given}.\n"
            "Give --contact you@your.org, or set sources.fetch.contact."
        )
    return f"pdt/{metadata.version('pdt')} ({contact}) httpx2/{httpx2.__version__}"


def base_url(project: str, test_server: str | None) -> str:
    """Where a project is asked; a test server must be on this machine."""
    if test_server is None:
        if not is_wikimedia(f"https://{project}/"):
            raise UsageError(f"{project!r} is not a Wikimedia wiki.\nHosts: {', '.join(HOSTS)}.")
        return f"https://{project}"
    parts = urlsplit(test_server)
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        raise UsageError(
            f"--test-server {test_server!r} is not on this machine.\n"
            "It is for tests only: http://127.0.0.1:PORT."
        )
    return f"http://{parts.netloc}"


def is_wikimedia(url: str) -> bool:
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    return parts.scheme == "https" and any(
        host == known or host.endswith(f".{known}") for known in HOSTS
    )


class PoliteClient:
    """Asks for one address at a time, from several threads at most `connections` at once."""

    def __init__(
        self,
        config: FetchConfig,
        *,
        test_server: str | None = None,
        known: Recording | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._config, self._known, self._sleep = config, known, sleep
        self._test_base = base_url("", test_server) if test_server else None
        self._http = httpx2.Client(
            headers={"User-Agent": user_agent(config.contact), "Accept-Encoding": "gzip"},
            timeout=config.timeout_seconds,
            limits=httpx2.Limits(max_connections=config.connections),
            follow_redirects=False,
            trust_env=test_server is None,
        )
        self._lock = threading.Lock()
        self._next_request = 0.0
        """Of the monotonic clock: nobody asks before."""
        self.requests = 0

    def close(self) -> None:
        self._http.close()

    def get(self, url: str) -> HttpAnswer:
        """The whole answer with status 200, after as many tries as the config allows."""
        why = "no answer"
        for attempt in range(self._config.attempts):
            try:
                answer = self._once(url)
            except (httpx2.TransportError, httpx2.StreamError, _TooSlow) as error:
                why = f"{type(error).__name__}: {error}"
                self._wait(self._backoff(attempt))
                continue
            if answer.status == 200:
                code = self._wait_code(answer)
                if code is None:
                    return answer
                why = f"the wiki asked us to wait ({code})"
            elif answer.status in (404, 410):
                raise SourceRefused(url, f"was not found ({answer.status})", "Choose another.")
            elif answer.status == 429 or answer.status >= 500:
                why = f"status {answer.status}"
            else:
                raise SourceRefused(url, f"was answered with status {answer.status}", "Look at it.")
            self._wait(self._retry_after(answer, self._backoff(attempt)))
        raise FetchFailed(
            f"{url} failed {self._config.attempts} times; last: {why.rstrip('.')}.\n"
            "What was taken is kept. Try again later with --resume."
        )

    def _once(self, url: str) -> HttpAnswer:
        """One answer, with redirects on Wikimedia followed and a 304 filled from what we hold."""
        known = self._known.find(url) if self._known is not None else None
        etag = known.headers.get("etag") if known else None
        for _ in range(MOST_REDIRECTS + 1):
            self._refuse_foreign(url)
            answer = self._exchange(url, {"If-None-Match": etag} if etag else {})
            if answer.status == 304 and known is not None:
                return known
            if answer.status not in (301, 302, 303, 307, 308):
                return answer
            url = urljoin(url, answer.headers.get("location", ""))
        raise SourceRefused(url, f"redirects more than {MOST_REDIRECTS} times", "Look at it.")

    def _exchange(self, url: str, headers: dict[str, str]) -> HttpAnswer:
        self._take_turn()
        started = time.monotonic()
        with self._http.stream("GET", url, headers=headers) as response:
            parts = []
            for part in response.iter_bytes():
                parts.append(part)
                if time.monotonic() - started > self._config.body_seconds:
                    raise _TooSlow(f"more than {self._config.body_seconds:g} s for one answer")
            received = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            lower = {name.lower(): value for name, value in response.headers.items()}
            return HttpAnswer(url, response.status_code, lower, b"".join(parts), received)

    def _refuse_foreign(self, url: str) -> None:
        inside = is_wikimedia(url) or (
            self._test_base is not None and url.startswith(f"{self._test_base}/")
        )
        if not inside:
            raise SourceRefused(url, "is not on a Wikimedia host", "It is never asked.")

    def _take_turn(self) -> None:
        """Wait until this request may go; turns are handed out at the configured pace."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next_request)
            self._next_request = turn + 1 / self._config.requests_per_second
            self.requests += 1
        if turn > now:
            self._sleep(turn - now)

    def _wait(self, seconds: float) -> None:
        """Hold every connection back, not only this one."""
        with self._lock:
            self._next_request = max(self._next_request, time.monotonic() + seconds)
        self._sleep(seconds)

    def _backoff(self, attempt: int) -> float:
        return self._config.backoff_seconds * 2**attempt

    def _retry_after(self, answer: HttpAnswer, otherwise: float) -> float:
        seconds = retry_after_seconds(answer.headers.get("retry-after"))
        if seconds is None:
            return otherwise
        if seconds > self._config.retry_after_most:
            raise FetchFailed(
                f"Wikimedia asks us to wait {seconds:.0f} s.\n"
                "What was taken is kept. Go on then with --resume."
            )
        return seconds

    def _wait_code(self, answer: HttpAnswer) -> str | None:
        """The reason when a 200 of the action API only says: not now."""
        if "/api.php" not in answer.url:
            return None
        error = api_error(answer.body)
        code = error.partition(":")[0] if error else ""
        return code if code in _WAIT_CODES else None


class _TooSlow(Exception):
    """A body that drips on for longer than we wait."""


def retry_after_seconds(value: str | None) -> float | None:
    """Seconds, or the time until a date."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        date = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    now = datetime.datetime.now(date.tzinfo or datetime.UTC)
    return max(0.0, (date - now).total_seconds()) if date.tzinfo else None
