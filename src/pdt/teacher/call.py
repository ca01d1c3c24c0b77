"""One question to a language model and its reply, named by everything that decides the reply.

Paper: §4.2.
"""

from functools import cached_property
from typing import Any, Literal, Protocol

from pydantic import Field, JsonValue

from pdt.contract import Contract, Sha256
from pdt.errors import PdtError
from pdt.provenance import sha256_json
from pdt.terms import TeacherPass

CODE = "pdt.teacher/1"
"""The version of the code that asks and reads: raise it when old replies must not be used."""


class Message(Contract):
    """One turn of the conversation."""

    role: Literal["system", "user", "assistant"]
    """Who speaks."""
    content: str
    """What is said."""


class Call(Contract):
    """Everything that decides a reply; equal calls are one call and are paid once."""

    code: str = CODE
    """The version of the code that asks."""
    teacher_pass: TeacherPass
    """extract_facts or compose_answer."""
    attempt: int = Field(ge=0)
    """0 for the first reply, then the repairs."""
    prompt: str
    """The prompt file."""
    prompt_sha256: Sha256
    """Its digest."""
    input_sha256: Sha256
    """Digest of what is taught from: the article, and the facts for the second pass."""
    model: str
    """The model's name at the server."""
    parameters: dict[str, JsonValue]
    """Temperature, seed, token ceiling and the like."""
    reply_schema: dict[str, JsonValue]
    """The JSON Schema that the reply must keep."""
    messages: tuple[Message, ...]
    """The whole conversation."""

    @cached_property
    def key(self) -> str:
        """The name of this call: the digest of everything above."""
        return sha256_json(self.model_dump(mode="json"))

    @property
    def body(self) -> dict[str, Any]:
        """The request's body, as the protocol wants it."""
        return {
            "model": self.model,
            "messages": [message.model_dump() for message in self.messages],
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": str(self.teacher_pass),
                    "schema": self.reply_schema,
                    "strict": True,
                },
            },
            **self.parameters,
        }


class Reply(Contract):
    """What came back, and what it cost."""

    text: str
    """The reply as it was received."""
    finish: str
    """Why it ended: `stop`, or `length` at the token ceiling."""
    refusal: str | None = None
    """The server's words when the model would not answer."""
    model: str
    """The model that the server says it used."""
    input_tokens: int = Field(ge=0)
    """As the server counted them."""
    output_tokens: int = Field(ge=0)
    """As the server counted them."""
    cost: float = Field(ge=0)
    """At the configured prices."""


class Client(Protocol):
    """Whoever can answer a call."""

    def complete(self, call: Call) -> Reply: ...


class NotAnswered(PdtError):
    """This call has no recorded reply, and this client sends nothing."""

    def __init__(self, call: Call) -> None:
        self.call = call
        super().__init__(
            f"No recorded reply for {call.teacher_pass}, attempt {call.attempt} "
            f"(call {call.key[:16]}…, model {call.model}).\n"
            "Prompt, input, schema, model or parameters differ from those that were recorded. "
            "Use teacher.kind=endpoint to ask, or another --calls directory."
        )
