"""The run as one typed, frozen tree.

Every number of the paper stands once, in `presets/canonical.yaml`. A preset is a YAML file that may
say `extends: OTHER` and list differences. Unknown keys are refused with the nearest known one; a
width that does not divide is refused with both numbers.

Paper: Table 4, Appendix A.
"""

import difflib
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from pdt.errors import ConfigError, UsageError
from pdt.terms import (
    CodebookStart,
    Component,
    ComputeDtype,
    EncoderKind,
    Loss,
    NodeText,
    NotesCondition,
    PlanCondition,
    RopeScaling,
    TeacherKind,
    TrunkFamily,
)

Count = Annotated[int, Field(ge=1)]


class Strict(BaseModel):
    """A frozen node of the tree; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RopeConfig(Strict):
    """Rotary positions, in the parameters of the family's own configuration."""

    theta: Annotated[float, Field(gt=0)]
    scaling: RopeScaling = RopeScaling.NONE
    factor: Annotated[float, Field(gt=0)] = 1.0
    original_positions: Count | None = None
    """Positions the trunk was pretrained with (llama3, yarn)."""
    low_frequency_factor: float | None = None
    high_frequency_factor: float | None = None
    """llama3 only."""
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float | None = None
    """yarn only."""

    @model_validator(mode="after")
    def _complete(self) -> "RopeConfig":
        if (
            self.scaling in (RopeScaling.LLAMA3, RopeScaling.YARN)
            and self.original_positions is None
        ):
            raise ValueError(f"{self.scaling} scaling needs original_positions")
        if self.scaling is RopeScaling.LLAMA3 and (
            self.low_frequency_factor is None or self.high_frequency_factor is None
        ):
            raise ValueError("llama3 scaling needs low_frequency_factor and high_frequency_factor")
        return self


class TrunkShape(Strict):
    """The dimensions of a dense RoPE decoder."""

    family: TrunkFamily
    layers: Count
    width: Count
    query_heads: Count
    kv_heads: Count
    head_width: Count
    feed_forward: Count
    vocabulary: Count
    tied_head: bool
    norm_eps: Annotated[float, Field(gt=0)]
    max_positions: Count
    rope: RopeConfig

    @property
    def qk_norm(self) -> bool:
        return self.family is TrunkFamily.QWEN3

    @property
    def qkv_bias(self) -> bool:
        return self.family is TrunkFamily.QWEN2

    @model_validator(mode="after")
    def _divides(self) -> "TrunkShape":
        _require_divides("query_heads", self.query_heads, "kv_heads", self.kv_heads)
        _require_divides("head_width", self.head_width, "the two halves of a rotary pair", 2)
        return self


class TrunkConfig(Strict):
    """Which pretrained decoder is split, and its dimensions."""

    source: str | None = None
    """Hub id, local Hugging Face directory, or GGUF file; null for random weights."""
    revision: str | None = None
    """The hub commit; required when `source` is a hub id."""
    shape: TrunkShape


class LanesConfig(Strict):
    """The physical decoder axis."""

    count: Annotated[int, Field(ge=1, le=6)]
    fork_layer: Count
    """First layer that every lane owns a copy of; the layers below are one frozen trunk."""
    block_tokens: Count
    """τ: lane-local tokens between two barriers."""


class PlannerConfig(Strict):
    """The set planner of §3.2."""

    nodes: Count
    width: Count
    layers: Count
    heads: Count
    feed_forward: Count
    max_prompt_tokens: Count
    """A fail-fast ceiling; a source is never truncated to meet it."""

    @model_validator(mode="after")
    def _divides(self) -> "PlannerConfig":
        _require_divides("width", self.width, "heads", self.heads)
        return self


class ReadsConfig(Strict):
    """Plan-KV and SNC: both are gated cross-attentions over memories of one width."""

    memory_width: Count
    width: Count
    heads: Count
    plan_gate: float
    notes_gate: float
    """Start of the residual gates, before the sigmoid."""

    @model_validator(mode="after")
    def _divides(self) -> "ReadsConfig":
        _require_divides("width", self.width, "heads", self.heads)
        return self


class NotesConfig(Strict):
    """The finite, delayed channel of §3.5."""

    codebooks: Count
    codes: Count
    window_blocks: Count
    condition: NotesCondition
    writer_norm: bool
    """A LayerNorm without parameters after the writer; the paper has none (docs/gaps.md)."""
    codebook_start: CodebookStart
    """Whether training begins with drawn codes or with codes taken from states it has written."""


class HeadsConfig(Strict):
    """The semantic heads of §5.2."""

    width: Count
    fact_width: Count
    """Width of the frozen text encoder that embeds facts."""


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


class RecordsConfig(Strict):
    """From a taught document to a training record. Paper: §4."""

    limits: ContractLimits
    note_delay_blocks: Count
    """Δ: a note of block b is first readable in block b+Δ."""
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
        default_factory=lambda: PilotConfig(**_canonical("records", "pilot"))
    )

    @model_validator(mode="after")
    def _places(self) -> "RecordsConfig":
        for place in ("{source}", "{request}"):
            if self.prompt_format.count(place) != 1:
                raise ValueError(f"prompt_format must contain {place} exactly once")
        return self


Share = Annotated[float, Field(ge=0, le=1)]


class SourceGateLimits(Strict):
    """The numbers of Table 1; the length of the body is `records.limits.source_tokens`."""

    age_years: Count
    """Years between the event's end and the acquisition, at least."""
    assessment_classes: tuple[str, ...]
    """Classes that a history-oriented WikiProject must have given."""
    sections: Count
    paragraphs: Count
    """Substantive ones, at least."""
    paragraph_tokens: Count
    """A paragraph is substantive from this many tokens on."""
    citation_occurrences: Count
    cited_works: Count
    """Distinct ones, at least."""
    scholarly_works: Count
    """Distinct scholarly or institutional works, at least."""
    cited_paragraphs: Share
    """Share of substantive paragraphs with a citation, at least."""
    top_work: Share
    """Share of occurrences that the most cited work may have, at most."""


class SplitShares(Strict):
    """How new families are divided; families that are sealed stay where they are."""

    seed: int
    train: Share
    validation: Share
    test: Share

    @model_validator(mode="after")
    def _whole(self) -> "SplitShares":
        total = self.train + self.validation + self.test
        if abs(total - 1) > 1e-9:
            raise ValueError(f"train, validation and test add up to {total:g}; make them 1")
        return self


class HtmlLimits(Strict):
    """What a page may ask of the reader before it is refused."""

    bytes: Count
    depth: Count
    """Nested elements; parsing costs their number times their depth."""


class FetchConfig(Strict):
    """How Wikimedia is asked. Its rules: a contact, few connections, back off when told to."""

    contact: str | None = None
    """A mail address or web page of the operator, sent with every request; there is no default."""
    project: str
    """The wiki, by host."""
    connections: Annotated[int, Field(ge=1, le=3)]
    maxlag: Annotated[int, Field(ge=1)]
    """Seconds of replication lag above which the servers may refuse."""
    requests_per_second: Annotated[float, Field(gt=0)]
    timeout_seconds: Annotated[float, Field(gt=0)]
    """Of a connection, and of each silence while reading."""
    body_seconds: Annotated[float, Field(gt=0)]
    """Of one whole answer, however steadily it drips."""
    attempts: Count
    """Tries of one request before its candidate is put off."""
    backoff_seconds: Annotated[float, Field(ge=0)]
    """Pause after the first failure without `Retry-After`; doubles each time."""
    retry_after_most: Annotated[float, Field(gt=0)]
    """A longer `Retry-After` ends the run instead of waiting."""


class SourcesConfig(Strict):
    """From Wikimedia to an accepted article. Paper: §4.1, Table 1."""

    source_gates: SourceGateLimits
    splits: SplitShares
    html: HtmlLimits
    fetch: FetchConfig


Weight = Annotated[float, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0)]


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


class TeacherConfig(Strict):
    """Who extracts facts and composes answers. Paper: §4.2."""

    kind: TeacherKind
    attempts: Count
    """Replies that one pass over one document may take, repairs included."""
    budget: Weight | None = None
    """Money that a directory of calls may cost in all; needed before a call is made."""
    endpoint: EndpointConfig
    batch: BatchConfig


class ObjectiveConfig(Strict):
    """The weights of the combined objective. Paper: §5.3, Eq. 9."""

    token: Weight
    plan: Weight
    route: Weight
    progress: Weight
    fact_write: Weight
    note: Weight
    order: Weight
    commitment: Weight
    codebook: Weight
    usage: Weight
    read_out: Weight
    """That a note alone names what a sibling will write of it; not in the paper, 0 there."""
    note_temperature: Annotated[float, Field(gt=0)]
    """Of the InfoNCE between notes and what they were written from."""
    dependency_token: Weight
    """What a token that depends on a sibling counts in the token loss; the paper says 1."""

    def weight(self, loss: Loss) -> float:
        return getattr(self, loss.value)


class StageConfig(Strict):
    """One row of the curriculum; which losses count follows from what trains. Paper: Table 2."""

    first_step: Annotated[int, Field(ge=0)]
    plan: PlanCondition
    trains: tuple[Component, ...]

    @model_validator(mode="after")
    def _trains_something(self) -> "StageConfig":
        if not self.trains:
            raise ValueError("the stage trains nothing; name a component or remove the stage")
        if self.plan not in (PlanCondition.ORACLE, PlanCondition.LEARNED):
            raise ValueError(f"a stage trains on oracle or learned plans, not {self.plan}")
        return self


class OptimizerConfig(Strict):
    """AdamW with warmup and cosine decay. Paper: §6, Appendix A."""

    learning_rate: Annotated[float, Field(gt=0)]
    coordination_rate: Annotated[float, Field(gt=0)] = 1.0
    """All but the upper stacks starts from nothing and may learn at so many times that rate."""
    weight_decay: Weight
    warmup_steps: Annotated[int, Field(ge=0)]
    clip_norm: Annotated[float, Field(gt=0)]
    batch_documents: Count
    accumulation: Count
    """Batches whose gradients make one step."""


class WatchConfig(Strict):
    """How a run is seen; none of it changes what is learned, so a resumed run may change it."""

    evaluate_documents: Annotated[int, Field(ge=0)] = 64
    """Held-out documents, at most, that are read at every stage border; 0 reads none."""
    tensorboard: bool = True
    """Write TensorBoard event files beside the metrics, where tensorboard is installed."""
    wandb_project: str | None = None
    """Also send the metrics to this project of Weights & Biases."""


class TrunkCacheConfig(Strict):
    """States of the frozen trunk, kept on disk. Paper: §3.1, §6."""

    directory: str | None = None
    """Where; runs on the same trunk and records may share it. Null computes them every time."""
    max_bytes: Count = 20_000_000_000
    """At this size nothing more is added."""


class TrainingConfig(Strict):
    """Curriculum and optimization. Paper: §6, Table 2, Appendix A."""

    seed: int
    """Of the order of documents and of the semantic-to-physical assignment."""
    scale: Annotated[float, Field(gt=0)]
    """Multiplies every step number below: the whole curriculum, shorter."""
    steps: Count
    stages: tuple[StageConfig, ...]
    optimizer: OptimizerConfig
    recompute: bool
    """Recompute upper activations in the backward pass: less memory, more time."""
    dtype: ComputeDtype = ComputeDtype.AUTO
    """What trunk and lanes compute in; masters, gradient sums and AdamW are FP32 always."""
    shard_trunk: bool = False
    """Spread the frozen layers over the ranks too: less memory, more communication."""
    save_steps: Count
    """Steps between checkpoints; not scaled."""
    keep_checkpoints: Count
    """How many of the last ones stay, besides those at stage borders."""
    watch: WatchConfig = WatchConfig()
    trunk_cache: TrunkCacheConfig = TrunkCacheConfig()

    def scaled(self, step: int) -> int:
        return round(step * self.scale)

    @model_validator(mode="after")
    def _stages_follow(self) -> "TrainingConfig":
        borders = [self.scaled(stage.first_step) for stage in self.stages]
        borders.append(self.scaled(self.steps))
        if len(borders) < 2 or borders[0] != 0:
            raise ValueError("stages must begin with one whose first_step is 0")
        if any(a >= b for a, b in pairwise(borders)):
            raise ValueError(
                f"scale {self.scale} gives stage borders {borders}: every stage needs a step of "
                "its own; use a larger scale or other first_step values"
            )
        return self


class ClusterConfig(Strict):
    """Slurm, for `pdt corpus build --on slurm`."""

    partition: str | None = None
    qos: str | None = None
    time: str
    """Longest time of one task, as Slurm writes it."""
    memory_gb: Count
    """Of one task."""
    jobs: int
    """Tasks at a time; -1 for as many as there are."""
    setup: str | None = None
    """A shell command that each task begins with, such as activating an environment."""


class PdtConfig(Strict):
    """A Parallel Decoder Transformer, whole."""

    trunk: TrunkConfig
    lanes: LanesConfig
    planner: PlannerConfig
    reads: ReadsConfig
    notes: NotesConfig
    heads: HeadsConfig
    records: RecordsConfig
    sources: SourcesConfig = Field(default_factory=lambda: _canonical_sources())
    """A configuration saved before this section existed takes the canonical one."""
    objective: ObjectiveConfig
    training: TrainingConfig
    teacher: TeacherConfig = Field(default_factory=lambda: TeacherConfig(**_canonical("teacher")))
    cluster: ClusterConfig = Field(default_factory=lambda: ClusterConfig(**_canonical("cluster")))

    @property
    def upper_layers(self) -> int:
        return self.trunk.shape.layers - self.lanes.fork_layer

    @model_validator(mode="after")
    def _fits(self) -> "PdtConfig":
        layers = self.trunk.shape.layers
        if self.lanes.fork_layer >= layers:
            raise ValueError(
                f"lanes.fork_layer is {self.lanes.fork_layer}, but the trunk has layers 0 to "
                f"{layers - 1} and at least one must lie above the fork; choose 1 to {layers - 1}"
            )
        if self.reads.memory_width % self.notes.codebooks:
            raise ValueError(
                f"reads.memory_width {self.reads.memory_width} does not divide into "
                f"notes.codebooks {self.notes.codebooks} equal subvectors; change one of them"
            )
        return self

    @model_validator(mode="after")
    def _records_fit(self) -> "PdtConfig":
        most = self.records.limits.plan_nodes.max
        if most > self.planner.nodes:
            raise ValueError(
                f"records.limits.plan_nodes.max {most} is above planner.nodes "
                f"{self.planner.nodes}: such a plan has no place; lower one or raise the other"
            )
        return self


def _canonical_sources() -> SourcesConfig:
    return SourcesConfig.model_validate(_preset_tree("canonical")["sources"])


def _require_divides(name: str, value: int, by: str, divisor: int) -> None:
    if value % divisor:
        raise ValueError(f"{name} {value} is not a multiple of {by} {divisor}; change one of them")


def preset_names() -> list[str]:
    """The presets in the package, canonical first."""
    folder = resources.files("pdt") / "presets"
    names = sorted(
        p.name.removesuffix(".yaml") for p in folder.iterdir() if p.name.endswith(".yaml")
    )
    return sorted(names, key=lambda name: name != "canonical")


def _canonical(*path: str) -> dict[str, Any]:
    """A part that a configuration saved before the part existed does not name."""
    tree: Any = _preset_tree("canonical")
    for key in path:
        tree = tree[key]
    return tree


def load_config(
    preset: str = "canonical",
    *,
    file: Path | None = None,
    overrides: Sequence[str] = (),
    edits: Mapping[str, Any] | None = None,
) -> PdtConfig:
    """A preset with edits, a YAML file over it, then `a.b=c` overrides; validated once, whole."""
    tree = _merge(_preset_tree(preset), edits or {})
    if file is not None:
        tree = _merge(tree, _read_yaml(file))
    for text in overrides:
        tree = _merge(tree, parse_override(text))
    return validate_config(tree, where=str(file) if file else f"preset {preset}")


def validate_config(tree: Mapping[str, Any], *, where: str) -> PdtConfig:
    """The typed tree, or one error that lists every path, value and remedy."""
    try:
        return PdtConfig.model_validate(tree)
    except ValidationError as error:
        lines = [_explain(problem) for problem in error.errors()]
        raise ConfigError("\n".join([f"{where} is not a valid configuration.", *lines])) from error


def parse_override(text: str) -> dict[str, Any]:
    """`a.b=c` as a nested mapping; the value is read as YAML."""
    path, equals, value = text.partition("=")
    if not equals or not all(path.split(".")):
        raise UsageError(
            f"--set {text!r} is not of the form a.b=value, for example --set lanes.count=2."
        )
    try:
        leaf: Any = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise UsageError(f"--set {text!r}: the value is not YAML ({error}).") from error
    for key in reversed(path.split(".")):
        leaf = {key: leaf}
    return leaf


def _explain(problem: Any) -> str:
    path = ".".join(str(part) for part in problem["loc"]) or "configuration"
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(
            str(problem["loc"][-1]), _known_keys(problem["loc"][:-1]), n=1
        )
        hint = (
            f"did you mean {near[0]}?"
            if near
            else "remove it, or see `pdt config show` for the keys"
        )
        return f"  {path}: unknown key (value {problem['input']!r}); {hint}"
    if problem["type"] == "missing":
        return f"  {path}: missing; `pdt config show --preset canonical` shows a value"
    message = problem["msg"].removeprefix("Value error, ")
    value = (
        "" if isinstance(problem["input"], dict | BaseModel) else f" (value {problem['input']!r})"
    )
    return f"  {path}: {message}{value}"


def _known_keys(path: Sequence[int | str]) -> list[str]:
    node: Any = PdtConfig
    for part in path:
        field = node.model_fields.get(str(part))
        if field is None or not isinstance(field.annotation, type):
            return []
        node = field.annotation
    return list(node.model_fields) if hasattr(node, "model_fields") else []


def _preset_tree(name: str) -> dict[str, Any]:
    known = preset_names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise UsageError(f"There is no preset {name!r}.{hint}\nPresets: {', '.join(known)}.")
    text = (resources.files("pdt") / "presets" / f"{name}.yaml").read_text(encoding="utf-8")
    tree = yaml.safe_load(text)
    base = tree.pop("extends", None)
    return _merge(_preset_tree(base), tree) if base else tree


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist. Give --config a YAML file.") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read as YAML: {error}") from error
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} holds {type(tree).__name__}, expected a mapping of sections.")
    base = tree.pop("extends", None)
    return _merge(_preset_tree(base), tree) if base else tree


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on top of `base`, section by section."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = _merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def edit_config(config: PdtConfig, overrides: Sequence[str], *, where: str) -> PdtConfig:
    """A loaded config with `a.b=c` overrides on top, validated again."""
    tree: dict[str, Any] = config.model_dump(mode="json")
    for text in overrides:
        tree = _merge(tree, parse_override(text))
    return validate_config(tree, where=where)
