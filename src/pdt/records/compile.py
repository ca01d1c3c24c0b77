"""One taught document to one training record; a broken rule rejects the document whole.

Paper: §4.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdt.config import PdtConfig
from pdt.records.align import DocumentTokens, LaneTokens, tokenize_document
from pdt.records.arrays import PAD
from pdt.records.checks import check_document
from pdt.records.dependencies import PlacedDependency, place_dependency
from pdt.records.embed import Encoder, Projection, load_encoder, node_text
from pdt.records.progress import active_nodes
from pdt.records.roles import block_roles, fact_begins, lane_roles, roles_in_fact_order
from pdt.records.schema import RECORD_VERSION, TrainingRecord
from pdt.teacher.checks import CheckFailure
from pdt.teacher.document import TaughtDocument
from pdt.tokenizer import StudentTokenizer, load_tokenizer

NO_ENTROPY = -1.0


@dataclass(frozen=True)
class Compiler:
    """Everything fixed that turns documents into records."""

    config: PdtConfig
    tokenizer: StudentTokenizer
    encoder: Encoder
    projection: Projection

    @classmethod
    def load(cls, config: PdtConfig) -> "Compiler":
        """Tokenizer, encoder and projection as the config names them."""
        encoder = load_encoder(config)
        projection = Projection(
            config.records.projection_seed,
            planner_width=config.planner.width,
            encoder_width=encoder.width,
        )
        return cls(config, load_tokenizer(config.records.tokenizer), encoder, projection)

    @property
    def binding(self) -> dict[str, Any]:
        """What a compiled shard is bound to: equal bindings give equal bytes, wherever they run."""
        records = self.config.records
        return {
            "schema_version": RECORD_VERSION,
            "tokenizer": {
                "name": records.tokenizer.name,
                "sha256": self.tokenizer.sha256,
                "eos_id": self.tokenizer.eos_id,
            },
            "encoder": {"identity": self.encoder.identity, "width": self.encoder.width},
            "node_text": records.node_text.value,
            "projection": {"seed": records.projection_seed, "sha256": self.projection.sha256},
            "prompt_format": records.prompt_format,
            "limits": records.limits.model_dump(mode="json"),
            "lanes": self.config.lanes.count,
            "block_tokens": self.config.lanes.block_tokens,
            "plan_nodes": self.config.planner.nodes,
            "planner_width": self.config.planner.width,
            "max_prompt_tokens": self.config.planner.max_prompt_tokens,
            "note_delay_blocks": records.note_delay_blocks,
            "window_blocks": self.config.notes.window_blocks,
            "shard_records": records.shard_records,
        }

    def compile(self, document: TaughtDocument) -> TrainingRecord | list[CheckFailure]:
        """The record, or every rule that the document breaks."""
        tokens = tokenize_document(document, self.config, self.tokenizer)
        if failures := check_document(document, self.config, self.tokenizer, tokens):
            return failures
        return self.label(document, tokens)

    def label(self, document: TaughtDocument, tokens: DocumentTokens) -> TrainingRecord:
        """Every label of a document that passed its checks."""
        answer, facts = document.answer, document.inventory.facts
        roles_F = roles_in_fact_order(answer, [fact.id for fact in facts])
        return TrainingRecord(
            record_id=document.record_id,
            split=document.split,
            family_key=document.family_key,
            category=document.category,
            bundle_id=document.article.bundle_id,
            document=document.model_dump_json(),
            prompt_tokens_S=np.array(tokens.prompt, dtype=np.int32),
            section_tokens_KT=_padded(tokens.lanes),
            section_lengths_K=np.array([len(lane.ids) for lane in tokens.lanes], dtype=np.int32),
            presentation_rank_K=np.argsort(answer.lane_at_position).astype(np.int8),
            lane_role_KF=lane_roles(roles_F, len(tokens.lanes)),
            role_KUF=block_roles(roles_F, tokens.lanes),
            fact_begin_KT=fact_begins(roles_F, answer.sections, tokens.lanes),
            active_node_KU=active_nodes(answer.sections, answer.plans, tokens.lanes),
            fact_start_F=np.array([fact.start for fact in tokens.facts], dtype=np.int32),
            fact_stop_F=np.array([fact.stop for fact in tokens.facts], dtype=np.int32),
            **self._embed(document),
            **_routing(document),
            **_dependencies(document, tokens.lanes),
        )

    def _embed(self, document: TaughtDocument) -> dict[str, Any]:
        facts = document.inventory.facts
        by_id = {fact.id: fact for fact in facts}
        nodes = [
            (k, n, node)
            for k, plan in enumerate(document.answer.plans)
            for n, node in enumerate(plan.nodes)
        ]
        texts = [fact.statement for fact in facts]
        texts += [fact.hard_negative.statement for fact in facts]
        texts += [node_text(node, by_id, self.config.records.node_text) for _, _, node in nodes]
        vectors = self.encoder.encode(texts)
        shape = (len(document.answer.plans), self.config.planner.nodes)
        plan_KNP = np.zeros((*shape, self.config.planner.width), dtype=np.float32)
        valid_KN = np.zeros(shape, dtype=bool)
        for (k, n, _), target in zip(
            nodes, self.projection(vectors[2 * len(facts) :]), strict=True
        ):
            plan_KNP[k, n], valid_KN[k, n] = target, True
        return {
            "fact_embeddings_FE": vectors[: len(facts)],
            "negative_embeddings_FE": vectors[len(facts) : 2 * len(facts)],
            "plan_targets_KNP": plan_KNP,
            "node_valid_KN": valid_KN,
        }


def _padded(tokens_K: Sequence[LaneTokens]) -> np.ndarray:
    tokens_KT = np.full((len(tokens_K), max(len(lane.ids) for lane in tokens_K)), PAD, np.int32)
    for lane, tokens in enumerate(tokens_K):
        tokens_KT[lane, : len(tokens.ids)] = tokens.ids
    return tokens_KT


def _routing(document: TaughtDocument) -> dict[str, Any]:
    plans, facts = document.answer.plans, document.inventory.facts
    index = {fact.id: f for f, fact in enumerate(facts)}
    lane_F, node_F = np.full((2, len(facts)), PAD, dtype=np.int8)
    permitted_KF = np.zeros((len(plans), len(facts)), dtype=bool)
    for k, plan in enumerate(plans):
        for n, node in enumerate(plan.nodes):
            for fact in node.owned_facts:
                lane_F[index[fact]], node_F[index[fact]] = k, n
            for fact in node.reference_facts:
                permitted_KF[k, index[fact]] = True
    return {"owner_lane_F": lane_F, "owner_node_F": node_F, "permitted_KF": permitted_KF}


def _dependencies(document: TaughtDocument, tokens_K: Sequence[LaneTokens]) -> dict[str, Any]:
    listed = document.answer.dependencies
    placed = [place_dependency(dependency, tokens_K) for dependency in listed]
    found = [place for place in placed if place is not None]
    assert len(found) == len(listed), "check_document refuses a quote without a token"
    mask_KT = np.zeros((len(tokens_K), max(len(lane.ids) for lane in tokens_K)), dtype=bool)
    for place in found:
        mask_KT[place.dependency.receiver.lane, place.receiver_tokens] = True
    edges = [
        (r, token, token in p.coined_tokens)
        for r, p in enumerate(found)
        for token in p.receiver_tokens
    ]
    return {
        "dependency_ids": tuple(dependency.id for dependency in listed),
        "dependency_owner_R": np.array([d.owner.lane for d in listed], dtype=np.int8),
        "dependency_owner_block_R": np.array([p.owner_block for p in found], dtype=np.int16),
        "dependency_receiver_R": np.array([d.receiver.lane for d in listed], dtype=np.int8),
        "dependency_entropy_bits_R": np.array([_entropy(p) for p in found], dtype=np.float32),
        "coined_choice_ids": tuple(d.coined.choice_id if d.coined else None for d in listed),
        "dependency_token_KT": mask_KT,
        "edge_dependency_J": np.array([r for r, _, _ in edges], dtype=np.int16),
        "edge_token_J": np.array([token for _, token, _ in edges], dtype=np.int32),
        "edge_coined_J": np.array([coined for _, _, coined in edges], dtype=bool),
    }


def _entropy(place: PlacedDependency) -> float:
    coined = place.dependency.coined
    return NO_ENTROPY if coined is None else coined.entropy_bits
