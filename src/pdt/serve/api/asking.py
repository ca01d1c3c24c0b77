"""What clients of OpenAI's interfaces send, and how a source and a request are found in it.

A field that would change the answer and that nothing here honours is refused by its name. Every
other unknown field is ignored.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pdt.config import Strict
from pdt.generation.settings import GenerationSettings, settings_from
from pdt.serve.writing import Asked
from pdt.web.refusals import Refusal

Texts = Annotated[list[Annotated[str, Field(max_length=80)]], Field(max_length=32)]

NOT_HONOURED: dict[str, tuple[Any, ...]] = {
    "audio": (None,),
    "best_of": (None, 1),
    "echo": (None, False),
    "frequency_penalty": (None, 0),
    "function_call": (None, "none", "auto"),
    "functions": (None, []),
    "logit_bias": (None, {}),
    "logprobs": (None, False, 0),
    "max_completion_tokens": (None,),
    "max_output_tokens": (None,),
    "max_tokens": (None,),
    "modalities": (None, ["text"]),
    "n": (None, 1),
    "presence_penalty": (None, 0),
    "previous_response_id": (None,),
    "suffix": (None, ""),
    "tools": (None, []),
    "top_logprobs": (None, 0),
}
"""Fields by name, with the values under which they ask for nothing. An interface that honours one
has a field for it; the number of tokens has another name in each."""


class PdtFields(Strict):
    """What only this server knows, under `pdt`."""

    source: str | None = None
    interventions: Texts = Field(default_factory=list)
    settings: dict[str, Any] = Field(default_factory=dict)
    """top_k, min_p, repetition_penalty and the like."""


class Part(BaseModel):
    """A piece of a message."""

    type: str
    text: str | None = None


class Message(BaseModel):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None


class StreamOptions(BaseModel):
    include_usage: bool = False


class OpenAIFields(BaseModel):
    """What all of OpenAI's interfaces share."""

    model_config = ConfigDict(extra="allow")

    model: str
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    pdt: PdtFields = Field(default_factory=PdtFields)

    def check(self) -> None:
        """Refuse by name what would change the answer and is not honoured."""
        for name, value in (self.model_extra or {}).items():
            if name in NOT_HONOURED and value not in NOT_HONOURED[name]:
                raise Refusal(400, f"{name} is not honoured here. Leave it out.", param=name)

    def asked(
        self,
        source: str,
        request: str,
        *,
        max_tokens: int | None,
        seed: int | None = None,
        stop: str | list[str] | None = None,
    ) -> Asked:
        given: dict[str, Any] = {
            "max_tokens": max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": seed,
            "stop": (stop,) if isinstance(stop, str) else tuple(stop) if stop else None,
        }
        settings: GenerationSettings = settings_from(
            (),
            **(
                self.pdt.settings
                | {name: value for name, value in given.items() if value is not None}
            ),
        )
        return Asked(source, request, settings, tuple(self.pdt.interventions))


def text_of(content: str | list[Part] | None, param: str) -> str:
    """A message's text; a picture or a sound is refused."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    for part in content:
        if part.type not in ("text", "input_text", "output_text"):
            raise Refusal(
                400, f"A part of type {part.type[:40]!r} cannot be read; give text.", param=param
            )
    return "\n".join(part.text or "" for part in content)


def source_and_request(messages: list[Message], source: str | None, param: str) -> tuple[str, str]:
    """The request is the last user message. The source is `pdt.source`, or what stands before.

    What stands before: system, developer and user messages; earlier answers are no source. Where
    there is one message alone, its last paragraph is the request and the rest is the source.
    """
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    if not users:
        raise Refusal(400, "There is no user message: it says what to write.", param=param)
    request = text_of(messages[users[-1]].content, param).strip()
    before = [
        text_of(message.content, param).strip()
        for message in messages[: users[-1]]
        if message.role in ("system", "developer", "user")
    ]
    if source is None:
        source = "\n\n".join(text for text in before if text)
    return split_request(source, request, param)


def split_request(source: str | None, request: str, param: str) -> tuple[str, str]:
    """A text that must be both: its last paragraph is the request."""
    if source is not None and source.strip():
        return source, request
    head, _, tail = request.rpartition("\n\n")
    if not head.strip() or not tail.strip():
        raise Refusal(
            400,
            "There is no source to write from. Put it into a message before the request, above the "
            "request with an empty line between, or into pdt.source.",
            param=param,
        )
    return head.strip(), tail.strip()
