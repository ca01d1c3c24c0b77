"""The sections of the records and of the cluster that builds them.

Paper: §4.2, §4.3.
"""

from typing import Annotated

from pydantic import Field, model_validator

from pdt.config.node import Count, Strict
from pdt.config.presets import canonical_part
from pdt.terms import EncoderKind, NodeText


class Range(Strict):
    """From `min` to `max`, both included."""

    min: Annotated[int, Field(ge=0)]
    max: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _ordered(self) -> "Range":
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}; swap or change them")
        return self

    def holds(self, value: int) -> bool:
        return self.min <= value <= self.max

    def __str__(self) -> str:
        return f"{self.min} to {self.max}"


class ContractLimits(Strict):
    """The numbers of §4 that a document is checked against."""

    source_tokens: Range
    """Tokens of the model-visible article."""
    facts: Range
    fact_paragraphs: Count
    """Distinct source paragraphs that the facts must span, at least."""
    fact_sections: Count
    """Distinct source sections that the facts must span, at least."""
    plan_nodes: Range
    """Nodes of one plan."""
    section_tokens: Range
    """Student tokens of one target section, EOS not counted."""
    section_paragraphs: Range


class TokenizerConfig(Strict):
    """The student's own tokenizer."""

    name: str
    file: str | None = None
    """A tokenizer.json; null takes the packaged one, else `.cache/<name>/tokenizer.json`."""
    sha256: str | None = None
    """Digest of that file; null accepts any."""
    eos: str
    """The token appended once to every section."""


class EncoderConfig(Strict):
    """The frozen text encoder of §4.3; its width is `heads.fact_width`."""

    kind: EncoderKind
    name: str
    """Hub id, local directory, or the name of the hashed encoder."""
    revision: str | None = None
    """The hub commit, or the digest of the local weights."""


class PilotConfig(Strict):
    """The records that people inspect one by one. Paper: §4.3."""

    records: Count
    categories: Count
    """Historical categories that share those records equally."""
    architecture_records: Count = Field(
        default_factory=lambda: canonical_part("records")["pilot"]["architecture_records"]
    )
    """Training records that an architecture screen asks for. A saved configuration may lack it."""
    required: bool = False
    """Training asks for a sealed pilot, and a screen for those records."""


class RecordsConfig(Strict):
    """From a taught document to a training record. Paper: §4."""

    limits: ContractLimits
    note_delay_blocks: Count
    """Δ: a note of block b is first readable in block b+Δ, on the bus and in a record's edges."""
    tokenizer: TokenizerConfig
    encoder: EncoderConfig
    node_text: NodeText
    """What of a plan node is embedded as its target."""
    projection_seed: int
    """Seed of the fixed Gaussian Johnson-Lindenstrauss projection of node targets."""
    prompt_format: str
    """The student's prompt; `{source}` and `{request}` are replaced."""
    shard_records: Count
    """Documents per Parquet shard, the unit that a resumed compile keeps."""
    pilot: PilotConfig = Field(
        default_factory=lambda: PilotConfig(**canonical_part("records", "pilot"))
    )

    @model_validator(mode="after")
    def _places(self) -> "RecordsConfig":
        for place in ("{source}", "{request}"):
            if self.prompt_format.count(place) != 1:
                raise ValueError(f"prompt_format must contain {place} exactly once")
        return self


class ClusterConfig(Strict):
    """Slurm or Ray, for `pdt corpus build --on` and `pdt screen run --on`."""

    partition: str | None = None
    qos: str | None = None
    time: str
    """Longest time of one task, as Slurm writes it."""
    memory_gb: Count
    """Of one task."""
    gpus: Annotated[int, Field(ge=0)] = 0
    """Of one run of a screen on each node; a run has a process for each, or one without any."""
    nodes: Count = 1
    """Of one run of a screen."""
    jobs: int
    """Tasks at a time; -1 for as many as there are."""
    setup: str | None = None
    """A shell command that each task begins with, such as activating an environment."""
