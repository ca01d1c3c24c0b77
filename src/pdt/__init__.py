"""Parallel Decoder Transformer: one model that owns several causal frontiers.

`import pdt` is instant; torch is imported when a name of the model is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pdt.errors import PdtError

if TYPE_CHECKING:
    from pdt.config import PdtConfig, load_config
    from pdt.generation.interventions import (
        BlockReader,
        CloseNoteGate,
        DropNode,
        ExchangeNotes,
        ExchangeProducers,
        Intervention,
        MutateCode,
        RemoveNote,
        RemoveNotes,
        ReplaceNode,
        ScrambleNotes,
        SwapPlans,
        ZeroPlan,
        parse_intervention,
    )
    from pdt.generation.settings import GenerationSettings
    from pdt.generation.writer import Writer
    from pdt.model.build import from_trunk, random_model
    from pdt.model.pdt import ParallelDecoder
    from pdt.model.store import load_model, save_model

__version__ = "0.1.0"

__all__ = [
    "BlockReader",
    "CloseNoteGate",
    "DropNode",
    "ExchangeNotes",
    "ExchangeProducers",
    "GenerationSettings",
    "Intervention",
    "MutateCode",
    "ParallelDecoder",
    "PdtConfig",
    "PdtError",
    "RemoveNote",
    "RemoveNotes",
    "ReplaceNode",
    "ScrambleNotes",
    "SwapPlans",
    "Writer",
    "ZeroPlan",
    "from_trunk",
    "load_config",
    "load_model",
    "parse_intervention",
    "random_model",
    "save_model",
]

_INTERVENTIONS = (
    "Intervention", "parse_intervention", "BlockReader", "CloseNoteGate", "DropNode",
    "ExchangeNotes", "ExchangeProducers", "MutateCode", "RemoveNote", "RemoveNotes", "ReplaceNode",
    "ScrambleNotes", "SwapPlans", "ZeroPlan",
)  # fmt: skip
_LAZY = {
    "PdtConfig": "pdt.config",
    "load_config": "pdt.config",
    "ParallelDecoder": "pdt.model.pdt",
    "GenerationSettings": "pdt.generation.settings",
    **dict.fromkeys(_INTERVENTIONS, "pdt.generation.interventions"),
    "Writer": "pdt.generation.writer",
    "from_trunk": "pdt.model.build",
    "random_model": "pdt.model.build",
    "load_model": "pdt.model.store",
    "save_model": "pdt.model.store",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'pdt' has no attribute {name!r}")
