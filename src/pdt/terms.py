"""The paper's nouns that are values. One word, one meaning (docs/glossary.md)."""

from enum import StrEnum


class LaneBank(StrEnum):
    """What a lane owns of every upper projection; the paper's is `full`."""

    FULL = "full"
    LOW_RANK = "low_rank"


class NotesCondition(StrEnum):
    """Which notes a lane may read. Paper: §3.5, §7.1, Table 3."""

    BUS = "bus"
    SELF_ONLY = "self_only"
    NO_DYNAMIC = "no_dynamic"


class TrunkFamily(StrEnum):
    """The dense RoPE decoder families a trunk may come from."""

    LLAMA = "llama"
    QWEN2 = "qwen2"
    QWEN3 = "qwen3"


class RopeScaling(StrEnum):
    """The rotary variants those families use."""

    NONE = "default"
    LINEAR = "linear"
    LLAMA3 = "llama3"
    YARN = "yarn"


class FactRole(StrEnum):
    """What a lane does with a source fact. Paper: §4.2."""

    OWNER = "owner"
    REFERENCE = "reference"
    ABSENT = "absent"


class Alteration(StrEnum):
    """What a hard negative changes in its fact. Paper: §4.2, Stage A."""

    ENTITY = "entity"
    DATE = "date"
    QUANTITY = "quantity"
    RELATION = "relation"


class Split(StrEnum):
    """Where a document and all its relatives fall, fixed before any teaching. Paper: Table 1."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


class SourceOrigin(StrEnum):
    """Where a source bundle comes from."""

    WIKIMEDIA = "wikimedia"
    CHRONICLE = "chronicle"
    CURATED = "curated"


class TeacherKind(StrEnum):
    """Who teaches. Paper: §4.2."""

    ENDPOINT = "endpoint"
    """A language model behind an OpenAI-compatible server."""
    REPLAY = "replay"
    """The same, from recorded calls alone: nothing is sent."""
    CHRONICLE = "chronicle"
    """Chronicle, which knows the worlds of its own bundles."""
    EXTRACTIVE = "extractive"
    """The sentences of the source themselves, divided and put together; no language model."""


class TeacherPass(StrEnum):
    """The two passes of a teacher. Paper: §4.2."""

    EXTRACT_FACTS = "extract_facts"
    COMPOSE_ANSWER = "compose_answer"


class Inspection(StrEnum):
    """What a person said of a record. Paper: §4.3."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"


class Topic(StrEnum):
    """What a reviewer judged a page to be about; only the first two are wanted.

    Paper: §4.1, Table 1.
    """

    EVENT = "event"
    PROCESS = "process"
    BIOGRAPHY = "biography"
    LIST = "list"
    TIMELINE = "timeline"
    CATALOGUE = "catalogue"
    OTHER = "other"


class NodeText(StrEnum):
    """Which words of a plan node its target embeds. Paper: §4.3."""

    FULL = "full"
    """Objective, owned facts and permitted references."""
    OBJECTIVE = "objective"
    """The objective alone: a plan then says what to write about and never what is true of it."""


class NodeTarget(StrEnum):
    """What the vector of a plan node is made from. The first is the paper's. Paper: §4.3."""

    TEXT = "text"
    """Its words, through the frozen encoder: part of the record."""
    BEFORE = "before"
    """The trunk's state just before each source passage that it owns."""
    OPENING = "opening"
    """The mean state of that passage's first tokens."""
    PASSAGE = "passage"
    """The mean state of the whole passage."""
    FIRST_WORDS = "first_words"
    """The embeddings of that passage's first twelve tokens, the first of them most."""


class EncoderKind(StrEnum):
    """How facts and plan nodes become vectors. The first is the paper's."""

    SENTENCE_TRANSFORMERS = "sentence_transformers"
    MINILM = "minilm"
    HASHED = "hashed"


class PlanCondition(StrEnum):
    """Where the plans that lanes follow come from. Paper: §6, §7.1, Table 2, Table 3."""

    ORACLE = "oracle"
    LEARNED = "learned"


class Loss(StrEnum):
    """The parts of the objective, in the order of its sum; the last two are ours (docs/gaps.md).

    Paper: §5.3, Eq. 9.
    """

    TOKEN = "token"
    PLAN = "plan"
    ROUTE = "route"
    PROGRESS = "progress"
    FACT_WRITE = "fact_write"
    NOTE = "note"
    ORDER = "order"
    COMMITMENT = "commitment"
    CODEBOOK = "codebook"
    USAGE = "usage"
    READ_OUT = "read_out"
    POINT = "point"


class ComputeDtype(StrEnum):
    """What trunk and lanes compute in; masters and optimizer are FP32 always. Paper: Appendix A."""

    AUTO = "auto"
    """BF16 on a GPU that has it, else FP32."""
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


class Component(StrEnum):
    """What a curriculum stage trains or freezes; the trunk is frozen always. Paper: §6, Table 2."""

    PLANNER = "planner"
    LANES = "lanes"
    PLAN_KV = "plan_kv"
    SNC = "snc"
    HEADS = "heads"
    NOTE_WRITER = "note_writer"


class CodebookStart(StrEnum):
    """Where training takes its first codes from. The paper leaves it open (docs/gaps.md)."""

    DRAWN = "drawn"
    STATES = "states"
