"""The section of the teacher: who is asked, at what price, how often.

Paper: §4.2.
"""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, model_validator

from pdt.config.node import Count, Seconds, Share, Strict, Weight
from pdt.config.presets import canonical_part
from pdt.terms import TeacherKind


class EndpointConfig(Strict):
    """An OpenAI-compatible server. Its key comes from the environment and is never written."""

    base_url: str | None = None
    """For example `http://localhost:8000/v1`; null is the SDK's own default."""
    model: str | None = None
    """The model's name at that server; there is no default teacher."""
    key_variable: str = "OPENAI_API_KEY"
    """The environment variable that holds the key."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """Sent with every call as they are: temperature, seed, reasoning_effort, ..."""
    max_output_tokens: Count
    """A reply's ceiling; with it the worst case of a call is known before it is sent."""
    output_limit: Literal["max_completion_tokens", "max_tokens"]
    """What this server calls that ceiling."""
    stream: bool
    """Take the reply as it is written, so that a long one does not time out."""
    price_in: Weight | None = None
    price_out: Weight | None = None
    """Money for a million tokens; 0 for a server of your own. Needed before a call is made."""
    timeout: Seconds
    tries: Count
    """Most times one call is sent when the server fails or is busy."""
    first_wait: Seconds
    longest_wait: Seconds
    """Seconds between tries: doubling from the first; `Retry-After` wins when it asks for more."""
    concurrency: Count
    """Calls at a time in one process."""

    @model_validator(mode="after")
    def _no_secret(self) -> "EndpointConfig":
        if self.base_url is not None:
            parts = urlsplit(self.base_url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("base_url is no http or https address; give http://host:port/v1")
            if parts.username or parts.password or parts.query:
                raise ValueError(
                    "base_url holds a user, password or query; a configuration is written to "
                    "disk, so give the key in the environment"
                )
        return self


class BatchConfig(Strict):
    """The server's batch interface: half the price at many, an answer within a day."""

    calls: Count
    """Most calls in one file."""
    window: str
    poll: Seconds
    """Seconds between two looks at a running batch."""
    price: Annotated[float, Field(gt=0, le=1)]
    """What a batched call costs as a share of the price above."""


class ExtractiveConfig(Strict):
    """The teacher that needs no language model: how it divides and how it tells."""

    seed: int
    """Another seed, other divisions of the same sources."""
    draws: Count
    """Most answers drawn for one source until one keeps every rule."""
    divisions: dict[Literal["dealt", "position", "note", "heading", "words"], Weight]
    """What lanes are divided by, and how often; `dealt` is arbitrary: only the plan knows it."""
    node_facts: Annotated[tuple[Weight, ...], Field(min_length=1, max_length=3)] = Field(
        default_factory=lambda: tuple(canonical_part("teacher", "extractive")["node_facts"])
    )
    """How often a node is of one fact, of two, of three. Saved settings may be older than it."""
    pronoun_share: Share
    """Sentences that keep their pronoun, of those right behind another of their subject."""
    connective_share: Share
    """Sentences that begin with a connective."""
    style_share: Share
    """Documents with a house style, where one fits."""
    styles: Count
    """Most choices of house style in one document."""
    style_bits: tuple[Count, ...]
    """h: a choice is one of 2^h ways; each draws one of these that its ways allow."""

    @model_validator(mode="after")
    def _some(self) -> "ExtractiveConfig":
        if not (any(self.divisions.values()) and any(self.node_facts) and self.style_bits):
            raise ValueError(
                "divisions, node_facts and style_bits must each allow at least one; raise a weight"
            )
        return self


class TeacherConfig(Strict):
    """Who extracts facts and composes answers. Paper: §4.2."""

    kind: TeacherKind
    attempts: Count
    """Replies that one pass over one document may take, repairs included."""
    budget: Weight | None = None
    """Money that a directory of calls may cost in all; needed before a call is made."""
    endpoint: EndpointConfig
    batch: BatchConfig
    extractive: ExtractiveConfig = Field(
        default_factory=lambda: ExtractiveConfig(**canonical_part("teacher", "extractive"))
    )
