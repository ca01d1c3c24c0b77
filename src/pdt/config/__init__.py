"""The run as one typed, frozen tree.

One file a group of sections; `tree` is the whole, `presets` and `loading` make one.

Paper: Table 4, Appendix A.
"""

from pdt.config.loading import edit_config, load_config, parse_override, validate_config
from pdt.config.model import (
    HeadsConfig,
    LanesConfig,
    NotesConfig,
    PlannerConfig,
    ReadsConfig,
    RopeConfig,
    TrunkConfig,
    TrunkShape,
)
from pdt.config.node import Count, Strict
from pdt.config.presets import preset_names
from pdt.config.records import (
    ClusterConfig,
    ContractLimits,
    EncoderConfig,
    PilotConfig,
    Range,
    RecordsConfig,
    TokenizerConfig,
)
from pdt.config.sources import FetchConfig, HtmlLimits, SourceGateLimits, SourcesConfig, SplitShares
from pdt.config.teacher import BatchConfig, EndpointConfig, TeacherConfig
from pdt.config.training import (
    ObjectiveConfig,
    OptimizerConfig,
    StageConfig,
    TrainingConfig,
    TrunkCacheConfig,
    WatchConfig,
)
from pdt.config.tree import PdtConfig

__all__ = [
    "BatchConfig",
    "ClusterConfig",
    "ContractLimits",
    "Count",
    "EncoderConfig",
    "EndpointConfig",
    "FetchConfig",
    "HeadsConfig",
    "HtmlLimits",
    "LanesConfig",
    "NotesConfig",
    "ObjectiveConfig",
    "OptimizerConfig",
    "PdtConfig",
    "PilotConfig",
    "PlannerConfig",
    "Range",
    "ReadsConfig",
    "RecordsConfig",
    "RopeConfig",
    "SourceGateLimits",
    "SourcesConfig",
    "SplitShares",
    "StageConfig",
    "Strict",
    "TeacherConfig",
    "TokenizerConfig",
    "TrainingConfig",
    "TrunkCacheConfig",
    "TrunkConfig",
    "TrunkShape",
    "WatchConfig",
    "edit_config",
    "load_config",
    "parse_override",
    "preset_names",
    "validate_config",
]
