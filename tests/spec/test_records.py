"""§4.3: what a training record materializes."""

from pathlib import Path

import numpy as np
import pytest

from pdt.records.arrays import PAD
from pdt.records.compile import Compiler
from pdt.records.roles import BEGIN_TOKENS, ROLE_INDEX
from pdt.records.schema import TrainingRecord
from pdt.teacher.document import TaughtDocument
from pdt.terms import FactRole
from tests.support.record_samples import OWNED, document, sample, sample_compiler, train_tokenizer

OWNER, REFERENCE, ABSENT = (ROLE_INDEX[role] for role in FactRole)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    return sample_compiler(train_tokenizer(tmp_path_factory.mktemp("tokenizer") / "t.json"))


@pytest.fixture(scope="module")
def record(compiler: Compiler) -> TrainingRecord:
    compiled = compiler.compile(document())
    assert isinstance(compiled, TrainingRecord)
    return compiled


def prose(compiler: Compiler, record: TrainingRecord, lane: int, tokens: list[int]) -> str:
    return compiler.tokenizer.decode([int(record.section_tokens_KT[lane, t]) for t in tokens])


@pytest.mark.paper("§4.3")
def test_every_lane_ends_with_one_eos(compiler: Compiler, record: TrainingRecord) -> None:
    for lane, length in enumerate(record.section_lengths_K):
        tokens = record.section_tokens_KT[lane]
        assert tokens[length - 1] == compiler.tokenizer.eos_id
        assert (tokens[: length - 1] != compiler.tokenizer.eos_id).all()
        assert (tokens[length:] == PAD).all()


@pytest.mark.paper("§4.3")
def test_the_tokens_are_the_students_and_decode_to_the_section(
    compiler: Compiler, record: TrainingRecord
) -> None:
    for lane, section in enumerate(document().answer.sections):
        length = int(record.section_lengths_K[lane]) - 1
        assert prose(compiler, record, lane, list(range(length))) == section.text


@pytest.mark.paper("§4.1")
def test_the_prompt_holds_the_whole_source_and_no_citation(
    compiler: Compiler, record: TrainingRecord
) -> None:
    text = compiler.tokenizer.decode(record.prompt_tokens_S.tolist())
    article = document().article
    assert article.text in text
    assert text.count(document().answer.request) == 1
    for citation in article.citations:
        assert citation.text not in text
        assert f"{citation.id}" not in text.split()


@pytest.mark.paper("§2.1", "§4.3")
def test_every_fact_is_routed_to_the_one_node_that_owns_it(record: TrainingRecord) -> None:
    for index, fact in enumerate(document().inventory.facts):
        assert (record.owner_lane_F[index], record.owner_node_F[index]) == OWNED[fact.id]
        assert (record.lane_role_KF[:, index] == OWNER).sum() == 1


@pytest.mark.paper("§4.3")
def test_roles_stand_at_the_lane_and_block_of_their_evidence(
    compiler: Compiler, record: TrainingRecord
) -> None:
    size = compiler.config.lanes.block_tokens
    index = [fact.id for fact in document().inventory.facts].index("f5")
    for lane, role, words in ((0, OWNER, "The walls held for nine weeks"), (1, REFERENCE, "nine")):
        blocks = np.flatnonzero(record.role_KUF[lane, :, index] == role)
        tokens = [t for b in blocks for t in range(b * size, (b + 1) * size)]
        tokens = [t for t in tokens if t < record.section_lengths_K[lane]]
        assert words in prose(compiler, record, lane, tokens)
    assert set(record.role_KUF[2, :, index]) <= {ABSENT, PAD}


@pytest.mark.paper("§2.1")
def test_the_first_tokens_of_an_owned_fact_are_marked(
    compiler: Compiler, record: TrainingRecord
) -> None:
    answer = document().answer
    for lane in range(len(answer.sections)):
        owned = [roles for roles in answer.roles if roles.lanes[lane].role is FactRole.OWNER]
        begins = np.flatnonzero(record.fact_begin_KT[lane])
        runs = np.split(begins, np.flatnonzero(np.diff(begins) > 1) + 1)
        assert 0 < len(begins) <= BEGIN_TOKENS * len(owned)
        for run in runs:
            before = prose(compiler, record, lane, list(range(run[0])))
            assert not before or before.rstrip().endswith((".", "?", "!")), before


@pytest.mark.paper("§4.3", "§5.2")
def test_every_block_has_one_active_node_of_its_lane(
    compiler: Compiler, record: TrainingRecord
) -> None:
    size = compiler.config.lanes.block_tokens
    for lane, length in enumerate(record.section_lengths_K):
        blocks = -(-int(length) // size)
        active = record.active_node_KU[lane]
        assert record.node_valid_KN[lane, active[:blocks]].all()
        assert (active[blocks:] == PAD).all()


@pytest.mark.paper("§4.2", "§4.3")
def test_every_edge_reads_a_note_that_was_published_a_block_before(
    compiler: Compiler, record: TrainingRecord
) -> None:
    size = compiler.config.lanes.block_tokens
    assert record.sizes["J"] > 0
    for dependency, token in zip(record.edge_dependency_J, record.edge_token_J, strict=True):
        owner_block = record.dependency_owner_block_R[dependency]
        owner = record.dependency_owner_R[dependency]
        # The state of the token before it chooses a token (reading 29).
        assert (token - 1) // size >= owner_block + compiler.config.records.note_delay_blocks
        assert (owner_block + 1) * size < record.section_lengths_K[owner]


@pytest.mark.paper("§7.3")
def test_dependency_tokens_are_exactly_those_that_overlap_a_receiver_quote(
    compiler: Compiler, record: TrainingRecord
) -> None:
    marked = [np.flatnonzero(row).tolist() for row in record.dependency_token_KT]
    assert marked[2] == []
    assert "the Grey Oath bound" in prose(compiler, record, 0, marked[0])
    assert "the nine weeks of siege" in prose(compiler, record, 1, marked[1])
    shorter = prose(compiler, record, 0, marked[0][1:-1])
    assert "the Grey Oath bound" not in shorter


def test_a_coined_choice_carries_its_bits_to_its_own_tokens(
    compiler: Compiler, record: TrainingRecord
) -> None:
    assert record.dependency_entropy_bits_R.tolist() == [-1, 2]
    assert record.coined_choice_ids == (None, "oath")
    coined = record.edge_token_J[record.edge_coined_J].tolist()
    assert prose(compiler, record, 0, coined).strip() == "Grey Oath"


@pytest.mark.paper("§4.2", "§5.2", "Eq. 8")
def test_ranks_are_the_readers_order(record: TrainingRecord) -> None:
    assert record.lane_at_position_K.tolist() == [2, 0, 1]
    assert record.presentation_rank_K.tolist() == [1, 2, 0]


@pytest.mark.paper("§4.3")
def test_plan_targets_are_padded_and_masked(compiler: Compiler, record: TrainingRecord) -> None:
    assert record.plan_targets_KNP.shape == (3, 4, compiler.config.planner.width)
    assert record.node_valid_KN.sum(axis=1).tolist() == [2, 2, 2]
    assert (record.plan_targets_KNP[~record.node_valid_KN] == 0).all()
    assert (np.abs(record.plan_targets_KNP[record.node_valid_KN]).sum(axis=-1) > 0).all()


@pytest.mark.paper("§4.3")
def test_every_fact_and_hard_negative_is_embedded(record: TrainingRecord) -> None:
    assert record.fact_embeddings_FE.shape == record.negative_embeddings_FE.shape == (6, 24)
    assert not np.allclose(record.fact_embeddings_FE, record.negative_embeddings_FE)


@pytest.mark.paper("§4.2")
def test_the_compiler_invents_no_communication(compiler: Compiler) -> None:
    data = sample()
    data["answer"]["dependencies"] = []
    for lane in (0, 1):
        data["answer"]["plans"][lane]["nodes"][1]["dependencies"] = []
    compiled = compiler.compile(TaughtDocument.model_validate(data))
    assert isinstance(compiled, TrainingRecord)
    assert compiled.sizes["R"] == compiled.sizes["J"] == 0
    assert not compiled.dependency_token_KT.any()


@pytest.mark.paper("§4.2")
def test_a_document_is_rejected_whole(compiler: Compiler) -> None:
    data = sample()
    data["answer"]["lane_at_position"] = [0, 1, 2]
    assert isinstance(compiler.compile(TaughtDocument.model_validate(data)), list)


@pytest.mark.paper("Table 4", "§4")
def test_canonical_limits_are_the_papers() -> None:
    from pdt.config import load_config

    limits = load_config("canonical").records.limits
    assert (limits.facts.min, limits.facts.max) == (18, 48)
    assert (limits.fact_paragraphs, limits.fact_sections) == (12, 4)
    assert (limits.plan_nodes.min, limits.plan_nodes.max) == (4, 8)
    assert (limits.section_tokens.min, limits.section_tokens.max) == (700, 1000)
    assert (limits.section_paragraphs.min, limits.section_paragraphs.max) == (4, 12)
    assert (limits.source_tokens.min, limits.source_tokens.max) == (3000, 7000)


def test_a_record_whose_axes_disagree_is_refused(record: TrainingRecord) -> None:
    data = {name: getattr(record, name) for name in TrainingRecord.model_fields}
    data["owner_lane_F"] = record.owner_lane_F[:-1]
    with pytest.raises(ValueError, match="facts"):
        TrainingRecord.model_validate(data)


def test_a_record_cannot_be_changed(record: TrainingRecord) -> None:
    with pytest.raises(ValueError, match="read-only"):
        record.owner_lane_F[0] = 2


def test_paths_do_not_enter_the_binding(tmp_path: Path) -> None:
    first = sample_compiler(train_tokenizer(tmp_path / "a.json"))
    second = sample_compiler(train_tokenizer(tmp_path / "b.json"))
    assert first.binding == second.binding
