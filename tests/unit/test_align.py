"""Quote to characters to tokens to blocks, for any text and any quote."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdt.records.align import LaneTokens, monotone, tokenize_section
from pdt.records.arrays import PAD
from pdt.records.progress import active_nodes, nodes_of_tokens
from pdt.records.roles import ROLE_INDEX, block_roles
from pdt.sources.quote import Quote, quote_at
from pdt.teacher.answer import FactRoles, LaneRole, Plan, PlanNode, TargetSection
from pdt.terms import FactRole
from pdt.tokenizer import StudentTokenizer
from tests.support.record_samples import train_tokenizer

# Letters of one to four bytes, joined emoji, combining accents, scripts without spaces.
ALPHABET = "ab é ö ß 漢字 👩‍👩‍👧 e\u0301 ع ไทย .,'1412 "
texts = st.lists(st.sampled_from(list(ALPHABET)), min_size=1, max_size=60).map("".join)
paragraphs = st.lists(texts.map(lambda t: t.strip() or "x"), min_size=1, max_size=5)


def quote_of(text: str, passage: str, *, occurrence: int = 0) -> Quote:
    """The quote of one occurrence (0 the first) of `passage` in `text`."""
    start = -1
    for _ in range(occurrence + 1):
        start = text.index(passage, start + 1)
    return quote_at(text, start, start + len(passage))


@cache
def tokenizer() -> StudentTokenizer:
    return StudentTokenizer.from_file(train_tokenizer(Path(mkdtemp()) / "t.json"), eos="</s>")


def lane(section: TargetSection, block_tokens: int = 4) -> LaneTokens:
    return tokenize_section(section, tokenizer(), block_tokens=block_tokens)


@given(paragraphs, st.data())
@settings(max_examples=150, deadline=None)
def test_a_quote_is_exactly_the_tokens_that_share_a_character_with_it(
    written: list[str], data: st.DataObject
) -> None:
    section = TargetSection(paragraphs=tuple(written))
    tokens = lane(section)
    start = data.draw(st.integers(0, len(section.text) - 1))
    end = data.draw(st.integers(start + 1, len(section.text)))
    found = tokens.tokens_of_quote(quote_at(section.text, start, end))
    spans = zip(tokens.starts, tokens.ends, strict=True)
    assert list(found) == [i for i, (a, b) in enumerate(spans) if a < end and b > start]
    assert found, "every character has a token"
    covered = set().union(*(range(tokens.starts[i], tokens.ends[i]) for i in found))
    assert set(range(start, end)) <= covered


@given(paragraphs, st.integers(1, 9), st.data())
@settings(max_examples=150, deadline=None)
def test_the_bytes_of_a_quotes_tokens_contain_the_quote(
    written: list[str], block_tokens: int, data: st.DataObject
) -> None:
    section = TargetSection(paragraphs=tuple(written))
    tokens = lane(section, block_tokens)
    start = data.draw(st.integers(0, len(section.text) - 1))
    end = data.draw(st.integers(start + 1, len(section.text)))
    found = tokens.tokens_of(start, end)
    decoded = tokenizer().decode([tokens.ids[i] for i in found])
    assert section.text[start:end] in decoded
    blocks = tokens.blocks_of_quote(quote_at(section.text, start, end))
    assert blocks[0] == found[0] // block_tokens
    assert blocks[-1] == found[-1] // block_tokens
    assert blocks[-1] < tokens.blocks


@given(paragraphs, st.integers(1, 9))
@settings(max_examples=100, deadline=None)
def test_every_block_has_the_node_that_fills_most_of_it(written: list[str], size: int) -> None:
    section = TargetSection(paragraphs=tuple(written))
    plan = Plan(
        nodes=tuple(
            PlanNode(objective=f"part {i}", target_paragraphs=(i,)) for i in range(len(written))
        )
    )
    tokens = lane(section, size)
    nodes = nodes_of_tokens(section, plan, tokens)
    assert len(nodes) == len(tokens.ids)
    assert nodes == sorted(nodes), "nodes are written in order"
    for token, (start, end) in enumerate(zip(tokens.starts, tokens.ends, strict=True)):
        first, last = section.spans[nodes[token]]
        assert first <= start
        assert end <= last + 2, "a token never counts for a paragraph it does not touch"
    (active,) = active_nodes([section], [plan], [tokens])
    assert len(active) == tokens.blocks
    for block in range(tokens.blocks):
        inside = nodes[block * size : (block + 1) * size]
        best = max(inside.count(node) for node in inside)
        assert inside.count(active[block]) == best
        assert active[block] == min(node for node in inside if inside.count(node) == best)


@given(paragraphs, st.integers(1, 9), st.data())
@settings(max_examples=100, deadline=None)
def test_a_role_is_labelled_in_every_block_its_quote_touches_and_no_other(
    written: list[str], size: int, data: st.DataObject
) -> None:
    section = TargetSection(paragraphs=tuple(written))
    tokens = lane(section, size)
    start = data.draw(st.integers(0, len(section.text) - 1))
    end = data.draw(st.integers(start + 1, len(section.text)))
    role = LaneRole(role=FactRole.OWNER, quotes=(quote_at(section.text, start, end),))
    (labels,) = block_roles([FactRoles(fact_id="f", lanes=(role,))], [tokens])
    for block in range(tokens.blocks):
        inside = range(block * size, min((block + 1) * size, len(tokens.starts)))
        touched = any(tokens.starts[i] < end and tokens.ends[i] > start for i in inside)
        assert labels[block, 0] == ROLE_INDEX[FactRole.OWNER if touched else FactRole.ABSENT]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=40))
def test_edges_never_fall(spans: list[tuple[int, int]]) -> None:
    starts, ends = monotone(spans)
    assert list(starts) == sorted(starts)
    assert list(ends) == sorted(ends)


def test_the_second_of_two_equal_quotes_has_its_own_tokens() -> None:
    section = TargetSection(paragraphs=("In 1412 they came. In 1412 they left.",))
    tokens = lane(section)
    first, second = (quote_of(section.text, "In 1412", occurrence=n) for n in (0, 1))
    assert tokens.tokens_of_quote(first)[-1] < tokens.tokens_of_quote(second)[0]


def test_a_quote_may_run_over_a_paragraph_break() -> None:
    section = TargetSection(paragraphs=("They came.", "They left."))
    tokens = lane(section)
    whole = tokens.tokens_of_quote(quote_of(section.text, "came.\n\nThey"))
    assert "came.\n\nThey" in tokenizer().decode([tokens.ids[i] for i in whole])


def test_a_character_split_over_tokens_belongs_to_all_of_them() -> None:
    section = TargetSection(paragraphs=("a 漢 b",))
    tokens = lane(section)
    assert len(tokens.tokens_of_quote(quote_of(section.text, "漢"))) >= 2


def test_shorter_lanes_are_padded_past_their_last_block() -> None:
    short, long = (TargetSection(paragraphs=("word " * n + "end",)) for n in (1, 40))
    plan = Plan(nodes=(PlanNode(objective="all", target_paragraphs=(0,)),))
    lanes = [lane(short), lane(long)]
    active = active_nodes([short, long], [plan, plan], lanes)
    assert (active[0, lanes[0].blocks :] == PAD).all()
    assert (active[1] != PAD).all()
    assert active.dtype == np.int8


@pytest.mark.paper("§3.5")
def test_a_lanes_partial_last_block_publishes_nothing() -> None:
    tokens = LaneTokens(tuple(range(11)), tuple(range(10)), tuple(range(1, 11)), 4)
    assert (tokens.blocks, tokens.published_blocks) == (3, 2)
