"""The whole tree, and what its sections ask of one another.

Paper: Table 4, Appendix A.
"""

from pydantic import Field, model_validator

from pdt.config.model import (
    HeadsConfig,
    LanesConfig,
    NotesConfig,
    PlannerConfig,
    ReadsConfig,
    TrunkConfig,
)
from pdt.config.node import Strict
from pdt.config.presets import canonical_part
from pdt.config.records import ClusterConfig, RecordsConfig
from pdt.config.sources import SourcesConfig
from pdt.config.teacher import TeacherConfig
from pdt.config.training import ObjectiveConfig, TrainingConfig


class PdtConfig(Strict):
    """A Parallel Decoder Transformer, whole."""

    trunk: TrunkConfig
    lanes: LanesConfig
    planner: PlannerConfig
    reads: ReadsConfig
    notes: NotesConfig
    heads: HeadsConfig
    records: RecordsConfig
    sources: SourcesConfig = Field(
        default_factory=lambda: SourcesConfig(**canonical_part("sources"))
    )
    """A configuration saved before this section existed takes the canonical one."""
    objective: ObjectiveConfig
    training: TrainingConfig
    teacher: TeacherConfig = Field(
        default_factory=lambda: TeacherConfig(**canonical_part("teacher"))
    )
    cluster: ClusterConfig = Field(
        default_factory=lambda: ClusterConfig(**canonical_part("cluster"))
    )

    @property
    def upper_layers(self) -> int:
        return self.trunk.shape.layers - self.lanes.fork_layer

    @property
    def prompt_lanes(self) -> int:
        """How often the prompt is read above the fork: once where nothing in it differs by lane."""
        alike = self.lanes.shared and not self.reads.plan_in_prompt
        return 1 if alike else self.lanes.count

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
