"""A language model behind any OpenAI-compatible server, through the official SDK.

The order is what makes it safe: set the worst case aside, send, write the reply to disk, and only
then go on. The SDK's own retries are off, because each try must be in the books.

Paper: §4.2.
"""

import hashlib
import time
from typing import Any

from pdt.config import EndpointConfig, TeacherConfig
from pdt.errors import ConfigError, PdtError, UsageError
from pdt.teacher.budget import Budget, cost_of, most_tokens, worst_cost
from pdt.teacher.call import Call, Reply
from pdt.teacher.journal import Journal
from pdt.teacher.secret import Secret
from pdt.teacher.trouble import TeacherFailed, TryAgain, guarded


def open_sdk(endpoint: EndpointConfig, secret: Secret) -> Any:
    """The SDK's client; it alone holds the key."""
    try:
        import openai
    except ImportError as error:
        raise UsageError(
            "teacher.kind=endpoint needs the openai package.\n"
            "Install it: pip install 'pdt[teacher]'."
        ) from error
    return openai.OpenAI(
        api_key=secret.reveal(),
        base_url=endpoint.base_url,
        timeout=endpoint.timeout,
        max_retries=0,
    )


def check_settings(config: TeacherConfig) -> None:
    """A paid call needs a model, prices and a limit, all named by the operator."""
    endpoint = config.endpoint
    missing = [
        f"  teacher.{name}: {what}"
        for name, value, what in (
            ("endpoint.model", endpoint.model, "the teacher model's name"),
            ("endpoint.price_in", endpoint.price_in, "money for a million tokens sent"),
            ("endpoint.price_out", endpoint.price_out, "money for a million tokens received"),
            ("budget", config.budget, "the most that may be spent"),
        )
        if value is None
    ]
    if missing:
        raise ConfigError(
            "\n".join(["The teacher is not fully configured:", *missing, "Give each with --set."])
        )


class Endpoint:
    """Answers calls from the journal, else from the server, within the budget."""

    def __init__(self, config: TeacherConfig, journal: Journal, budget: Budget) -> None:
        check_settings(config)
        self.endpoint = config.endpoint
        self.journal = journal
        self.budget = budget
        self._secret = Secret.from_environment(self.endpoint.key_variable)
        self._sdk = open_sdk(self.endpoint, self._secret)

    def complete(self, call: Call) -> Reply:
        if (known := self.journal.get(call)) is not None:
            return known
        worst = worst_cost(call, self.endpoint)
        why = ""
        for number in range(self.endpoint.tries):
            hold = self.budget.reserve(call.key, worst)
            try:
                reply = self._send(call)
            except TryAgain as failure:
                why = str(failure)
                (self.budget.lose if failure.billed else self.budget.release)(hold, why)
                if number + 1 < self.endpoint.tries:
                    time.sleep(self._pause(call, number, failure.wait))
                continue
            except BaseException as error:
                # Refused by the server, or interrupted: only the former is surely not billed.
                close = self.budget.release if isinstance(error, PdtError) else self.budget.lose
                close(hold, type(error).__name__)
                raise
            self.journal.put(call, reply)
            self.budget.settle(hold, reply.cost)
            return reply
        raise TeacherFailed(
            f"The teacher's server failed {self.endpoint.tries} times in a row; the last: {why}\n"
            "Every answered call is kept. Run again with --resume when the server is well."
        )

    def _pause(self, call: Call, number: int, asked: float) -> float:
        """Seconds until the next try: doubling, spread by the call's key, never under `asked`."""
        longest = min(self.endpoint.longest_wait, self.endpoint.first_wait * 2**number)
        draw = hashlib.sha256(f"{call.key}{number}".encode()).digest()[0] / 255
        return max(asked, longest * (0.5 + draw / 2))

    def _send(self, call: Call) -> Reply:
        headers = {"Idempotency-Key": call.key}
        read = _read_stream if self.endpoint.stream else _read_whole
        taken = guarded(self._secret, lambda: read(self._sdk, call.body, headers))
        return as_reply(call, taken, self.endpoint, self._secret)


def as_reply(
    call: Call,
    taken: dict[str, Any],
    endpoint: EndpointConfig,
    secret: Secret,
    share: float = 1.0,
) -> Reply:
    """The reply with its cost; tokens that the server did not count are taken at their most."""
    sent, received = taken.get("input_tokens"), taken.get("output_tokens")
    if not isinstance(sent, int) or not isinstance(received, int):
        sent, received = most_tokens(call, endpoint)
    return Reply(
        text=secret.hide(taken["text"]),
        finish=taken["finish"],
        refusal=secret.hide(taken["refusal"]) if taken["refusal"] else None,
        model=secret.hide(taken["model"]),
        input_tokens=sent,
        output_tokens=received,
        cost=cost_of(endpoint, sent, received, share),
    )


def _read_whole(sdk: Any, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    return taken_from(
        sdk.chat.completions.create(**_sdk_arguments(body), extra_headers=headers).model_dump()
    )


def taken_from(reply: dict[str, Any]) -> dict[str, Any]:
    """What we keep of a chat completion."""
    try:
        choice, usage = reply["choices"][0], reply.get("usage") or {}
        message = choice["message"]
        return {
            "text": message.get("content") or "",
            "refusal": message.get("refusal"),
            "finish": choice.get("finish_reason") or "stop",
            "model": reply.get("model") or "",
            "input_tokens": usage.get("prompt_tokens"),
            "output_tokens": usage.get("completion_tokens"),
        }
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise TryAgain("the reply is no chat completion", billed=True) from error


def _read_stream(sdk: Any, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    text: list[str] = []
    refusal: list[str] = []
    taken: dict[str, Any] = {"finish": None, "model": ""}
    stream = sdk.chat.completions.create(
        **_sdk_arguments(body),
        extra_headers=headers,
        stream=True,
        stream_options={"include_usage": True},
    )
    with stream:
        for chunk in stream:
            taken["model"] = chunk.model or taken["model"]
            for choice in chunk.choices[:1]:
                text.append(choice.delta.content or "")
                refusal.append(getattr(choice.delta, "refusal", None) or "")
                taken["finish"] = choice.finish_reason or taken["finish"]
            if chunk.usage is not None:
                taken["input_tokens"] = chunk.usage.prompt_tokens
                taken["output_tokens"] = chunk.usage.completion_tokens
    if taken["finish"] is None:
        raise TryAgain("the reply was cut off", billed=True)
    return {**taken, "text": "".join(text), "refusal": "".join(refusal) or None}


_NAMED = ("model", "messages", "response_format")


def _sdk_arguments(body: dict[str, Any]) -> dict[str, Any]:
    """What the SDK has a name for, and the operator's parameters just as they are."""
    named = {key: body[key] for key in _NAMED}
    return {**named, "extra_body": {k: v for k, v in body.items() if k not in _NAMED}}
