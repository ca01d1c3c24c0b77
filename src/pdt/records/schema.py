"""The tokenized training record: everything the trainer reads, and the document it came from.

Lanes are semantic, in the order of the answer's plans. Inside a record shorter lanes are padded to
the longest with -1 (false in masks, 0 in vectors).

Paper: §4.3.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import ConfigDict, model_validator

from pdt.contract import Contract, Id, Sha256
from pdt.records.arrays import Axes, sizes_of
from pdt.terms import Split

RECORD_VERSION = "pdt.record/2"


class TrainingRecord(Contract):
    """One document, ready for the trainer."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    schema_version: Literal["pdt.record/2"] = "pdt.record/2"
    """The version of this contract."""
    record_id: Id
    """The document's id."""
    split: Split
    """Train, validation or test."""
    family_key: Id
    """Documents with one key share a split."""
    category: Id
    """The kind of history."""
    bundle_id: Sha256
    """The raw source bundle."""
    document: str
    """The TaughtDocument as JSON: what every label below can be derived from again."""

    prompt_tokens_S: Annotated[np.ndarray, Axes("S", "int32")]
    """Source and request in the student's tokens."""
    section_tokens_KT: Annotated[np.ndarray, Axes("KT", "int32")]
    """Every section, then one EOS."""
    section_lengths_K: Annotated[np.ndarray, Axes("K", "int32")]
    """Valid tokens of each lane, EOS included."""
    presentation_rank_K: Annotated[np.ndarray, Axes("K", "int8")]
    """The reader's position of each lane, 0 first."""

    fact_embeddings_FE: Annotated[np.ndarray, Axes("FE", "float32")]
    """Each true fact's statement through the frozen encoder."""
    negative_embeddings_FE: Annotated[np.ndarray, Axes("FE", "float32")]
    """Each hard negative's statement."""
    plan_targets_KNP: Annotated[np.ndarray, Axes("KNP", "float32")]
    """Each plan node's text through the encoder and the fixed projection."""
    node_valid_KN: Annotated[np.ndarray, Axes("KN", "bool")]
    """Which nodes exist."""

    fact_start_F: Annotated[np.ndarray, Axes("F", "int32")]
    """Of the prompt, the first token of each fact's quote."""
    fact_stop_F: Annotated[np.ndarray, Axes("F", "int32")]
    """And one past its last."""
    owner_lane_F: Annotated[np.ndarray, Axes("F", "int8")]
    """o(f): the one lane that owns each fact."""
    owner_node_F: Annotated[np.ndarray, Axes("F", "int8")]
    """The node of that lane that owns it: exact fact-to-node routing."""
    lane_role_KF: Annotated[np.ndarray, Axes("KF", "int8")]
    """0 OWNER, 1 REFERENCE, 2 ABSENT: what each lane does with each fact."""
    permitted_KF: Annotated[np.ndarray, Axes("KF", "bool")]
    """Whether some node of the lane may mention the fact, used or not."""

    fact_begin_KT: Annotated[np.ndarray, Axes("KT", "bool")]
    """The first tokens of every sentence in which a lane tells a fact that it owns."""
    active_node_KU: Annotated[np.ndarray, Axes("KU", "int8")]
    """The node whose target paragraphs occupy most of each block."""
    role_KUF: Annotated[np.ndarray, Axes("KUF", "int8")]
    """0 OWNER, 1 REFERENCE, 2 ABSENT at the lane and block where evidence occurs."""

    dependency_ids: tuple[Id, ...]
    """Names of the dependencies, in the order of the R axis."""
    dependency_owner_R: Annotated[np.ndarray, Axes("R", "int8")]
    """Lane that writes it first."""
    dependency_owner_block_R: Annotated[np.ndarray, Axes("R", "int16")]
    """Block in which the owner quote is complete."""
    dependency_receiver_R: Annotated[np.ndarray, Axes("R", "int8")]
    """Lane that refers to it."""
    dependency_entropy_bits_R: Annotated[np.ndarray, Axes("R", "float32")]
    """h of a coined choice; -1 when the dependency is an ordinary reference."""
    coined_choice_ids: tuple[Id | None, ...]
    """The coined choice behind each dependency; equal ids share one draw."""
    dependency_token_KT: Annotated[np.ndarray, Axes("KT", "bool")]
    """Tokens that overlap a required receiver quote."""
    edge_dependency_J: Annotated[np.ndarray, Axes("J", "int16")]
    """Per edge: its dependency, an index of the R axis."""
    edge_token_J: Annotated[np.ndarray, Axes("J", "int32")]
    """Per edge: the receiver token; the state that chooses it reads the owner's note (proven)."""
    edge_coined_J: Annotated[np.ndarray, Axes("J", "bool")]
    """Per edge: whether the token overlaps the coined text."""

    @model_validator(mode="after")
    def _axes_agree(self) -> "TrainingRecord":
        sizes = sizes_of(self)
        for name in ("dependency_ids", "coined_choice_ids"):
            if len(getattr(self, name)) != sizes["R"]:
                raise ValueError(f"{name} has {len(getattr(self, name))} names for {sizes['R']} R")
        return self

    @property
    def sizes(self) -> dict[str, int]:
        """The length of every axis, by letter."""
        return sizes_of(self)

    @property
    def lane_at_position_K(self) -> np.ndarray:
        """Which lane the reader sees at each position: π of Eq. 8."""
        return np.argsort(self.presentation_rank_K, kind="stable")
