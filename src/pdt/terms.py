"""The paper's nouns that are values. One word, one meaning (docs/glossary.md)."""

from enum import StrEnum


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
