"""What the paper asks of its data, held on the procedural corpus."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from pdt.chronicle import Chronicle, ChronicleDocument
from pdt.chronicle.article import key_of
from pdt.chronicle.coins import FIRST_THINGS, SECOND_THINGS
from pdt.chronicle.dials import SIZES, turn_dials
from pdt.chronicle.meter import Meter, nano_meter
from pdt.chronicle.world import held_out_deed, split_of_event
from pdt.config import PdtConfig, load_config
from pdt.records.align import tokenize_document
from pdt.records.checks import check_document
from pdt.records.dependencies import place_dependency
from pdt.terms import FactRole, Split
from pdt.tokenizer import StudentTokenizer, load_tokenizer
from tests.support.weights import needs_qwen

NANO = load_config("nano")
ALL_COINED = ["coined_share=1", "ordinary_share=0"]


def nano(
    count: int, *dials: str, seed: int = 0, split: Split = Split.TRAIN, start: int = 0
) -> Iterator[ChronicleDocument]:
    chronicle = Chronicle(seed, split, turn_dials("nano", dials), nano_meter())
    return chronicle.documents(count, start=start)


def failures(
    document: ChronicleDocument, config: PdtConfig, tokenizer: StudentTokenizer
) -> list[str]:
    return [str(failure) for failure in check_document(document.taught, config, tokenizer)]


@pytest.fixture(scope="module")
def tokenizer() -> StudentTokenizer:
    return load_tokenizer(NANO.records.tokenizer)


@pytest.mark.paper("§4.2")
@pytest.mark.parametrize("split", list(Split))
def test_every_nano_document_keeps_every_rule(split: Split, tokenizer: StudentTokenizer) -> None:
    for document in nano(100, split=split):
        assert failures(document, NANO, tokenizer) == []


@pytest.mark.slow
@pytest.mark.paper("§4.2")
@pytest.mark.parametrize("start", range(0, 10_000, 2_500))
def test_ten_thousand_documents_keep_every_rule_without_exception(
    start: int, tokenizer: StudentTokenizer
) -> None:
    for document in nano(2_500, seed=1, start=start):
        assert failures(document, NANO, tokenizer) == []


@pytest.mark.paper("§2.1")
def test_the_same_source_divides_by_the_request() -> None:
    """Phase, theme and party each split the facts of one world in their own way."""
    divisions: Counter[Any] = Counter()
    for document in nano(150):
        axis = str(document.taught.teacher.settings["division"])
        divisions[axis] += 1
        owners = defaultdict(set)
        for roles in document.taught.answer.roles:
            lane = next(k for k, r in enumerate(roles.lanes) if r.role is FactRole.OWNER)
            owners[lane].add(roles.fact_id)
        facts = document.world.facts
        by_axis = {
            name: {frozenset(f.id for f in facts if key_of(f, name) == key) for key in range(3)}
            for name in ("phase", "theme", "party")
        }
        assert {frozenset(group) for group in owners.values()} == by_axis[axis]
        assert len(set(map(frozenset, by_axis.values()))) == 3
        assert min(len(group) for groups in by_axis.values() for group in groups) >= 2
    assert min(divisions.values()) >= 30


@pytest.mark.paper("§2.1", "§6")
def test_no_lane_and_no_position_has_a_fixed_job() -> None:
    orders: Counter[Any] = Counter()
    jobs: Counter[Any] = Counter()
    for document in nano(600):
        answer = document.taught.answer
        orders[answer.lane_at_position] += 1
        first = answer.plans[0].nodes[0].objective
        jobs[first] += 1
    assert len(orders) == 6
    assert max(orders.values()) / 600 < 0.25
    assert max(jobs.values()) / 600 < 0.15


def _values(text: str) -> set[str]:
    """Numbers, and capitalized words that do not open a sentence."""
    return set(re.findall(r"\d+|(?<=[a-z,] )[A-Z][a-z]+", text))


@pytest.mark.paper("§4.2")
@pytest.mark.parametrize("size", ["nano", pytest.param("canonical", marks=needs_qwen)])
def test_every_name_and_number_of_a_section_stands_in_the_source(size: str) -> None:
    tokenizer = load_tokenizer(load_config(size).records.tokenizer)
    chronicle = Chronicle(2, Split.TRAIN, SIZES[size], Meter(tokenizer))
    for document in chronicle.documents({"nano": 150, "canonical": 12}[size]):
        answer = document.taught.answer
        coined = {d.coined.text for d in answer.dependencies if d.coined}
        things = {thing.noun.capitalize() for thing in FIRST_THINGS + SECOND_THINGS}
        source = set(re.findall(r"\w+", document.taught.article.text))
        for section in answer.sections:
            assert _values(section.text) - coined - things <= source


def test_other_dials_keep_the_worlds_and_what_is_asked_of_them() -> None:
    plain = list(nano(20, "coined_share=0", "ordinary_share=0"))
    for before, after in zip(plain, nano(20, *ALL_COINED, "bits=[5]"), strict=True):
        assert before.world == after.world
        named = after.taught.answer.request.removeprefix(before.taught.answer.request)
        form = r"( With the [a-z ]+ (an?|the) [A-Z][a-z]+ is named( again)?\.)+"
        assert re.fullmatch(form, named), named


@pytest.mark.paper("§4.2")
def test_plans_carry_no_value_of_any_fact() -> None:
    for document in nano(200):
        plans = " ".join(
            node.objective for plan in document.taught.answer.plans for node in plan.nodes
        )
        for fact in document.world.facts:
            assert fact.value not in plans
        assert not any(character.isdigit() for character in plans)


def _runs(text: str, tokenizer: StudentTokenizer, length: int) -> set[tuple[int, ...]]:
    ids = tokenizer.encode(text).ids
    return {tuple(ids[i : i + length]) for i in range(len(ids) - length + 1)}


@pytest.mark.paper("§4.2")
def test_what_is_coined_is_on_no_token_of_source_plan_or_request(
    tokenizer: StudentTokenizer,
) -> None:
    for document in nano(200, *ALL_COINED, "bits=[1,2,3,4,5,6,7,8]"):
        answer = document.taught.answer
        plans = " ".join(node.objective for plan in answer.plans for node in plan.nodes)
        for dependency in answer.dependencies:
            assert dependency.coined is not None
            word = tokenizer.encode(f" {dependency.coined.text}").ids
            assert len(word) == 1
            for text in (document.taught.article.text, answer.request, plans):
                assert tuple(word) not in _runs(text, tokenizer, 1)
            lanes = [tokenizer.encode(section.text).ids for section in answer.sections]
            assert [ids.count(word[0]) for ids in lanes].count(1) == 2


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_coined_choices_are_uniform(bits: int) -> None:
    """A chi-squared statistic below its 99.9% point."""
    counts: Counter[str] = Counter()
    for document in nano(640, *ALL_COINED, f"bits=[{bits}]"):
        (dependency,) = document.taught.answer.dependencies
        assert dependency.coined is not None
        assert dependency.coined.entropy_bits == bits
        pool = dependency.coined.alternatives
        assert len(set(pool)) == 2**bits
        counts[dependency.coined.text] += 1
    expected = 640 / 2**bits
    statistic = sum((counts[word] - expected) ** 2 / expected for word in pool)
    assert statistic < {1: 10.8, 2: 16.3, 3: 24.3}[bits]


def test_several_coins_have_nouns_and_words_of_their_own() -> None:
    dials = (*ALL_COINED, "bits=[1,2]", "lags=[1,2]", "least_coins=3", "coins=3", "dropped_facts=0")
    for document in nano(20, *dials):
        coined = {
            d.coined.choice_id: d.coined for d in document.taught.answer.dependencies if d.coined
        }
        assert len(coined) == 3
        words = [word for choice in coined.values() for word in choice.alternatives]
        assert len(words) == len(set(words))
        asked = document.taught.answer.request.count(" is named.")
        assert asked == len(coined)


def test_the_request_says_with_which_fact_a_thing_is_named_and_a_paragraph_has_one_name() -> None:
    dials = (*ALL_COINED, "bits=[1,2]", "lags=[1,2]", "coins=2", "receivers=2", "cue_first=true")
    for document in nano(60, *dials):
        answer, cues = document.taught.answer, {f.id: f.deed.cue for f in document.world.facts}
        asked, named = answer.request, set()
        for dependency in answer.dependencies:
            for end, again in ((dependency.owner, ""), (dependency.receiver, " again")):
                text = answer.sections[end.lane].text[: end.quote.start]
                noun = text.split()[-3]
                cue = max(cues.values(), key=lambda cue: text.rfind(f"as for the {cue}"))
                article = "the" if again else "an" if noun[0] in "AEIOU" else "a"
                assert f" With the {cue} {article} {noun} is named{again}." in asked
                named.add((end.lane, end.node, noun))
        assert len({(lane, node) for lane, node, _ in named}) == len(named)


def test_the_noun_before_a_coined_word_tells_its_entropy_and_nothing_more() -> None:
    nouns: dict[str, set[int]] = defaultdict(set)
    for document in nano(200, *ALL_COINED, "bits=[1,2,3,4,5,6,7,8]"):
        for dependency in document.taught.answer.dependencies:
            for end in (dependency.owner, dependency.receiver):
                text = document.taught.answer.sections[end.lane].text
                before = text[: end.quote.start].split()[-3]
                assert dependency.coined is not None
                nouns[before].add(int(dependency.coined.entropy_bits))
    assert sorted(next(iter(bits)) for bits in nouns.values()) == list(range(1, 9))
    assert all(len(bits) == 1 for bits in nouns.values())


@pytest.mark.paper("§4.2", "Fig. 3")
@pytest.mark.parametrize("lag", [1, 2])
def test_the_lag_between_coin_and_use_is_a_dial(lag: int, tokenizer: StudentTokenizer) -> None:
    for document in nano(60, *ALL_COINED, f"lags=[{lag}]"):
        tokens = tokenize_document(document.taught, NANO, tokenizer)
        for dependency in document.taught.answer.dependencies:
            placed = place_dependency(dependency, tokens.lanes)
            assert placed is not None
            assert placed.first_block - placed.owner_block == lag
            assert not placed.early(NANO.records.note_delay_blocks)


@pytest.mark.paper("§3.5", "Fig. 3")
def test_a_coined_word_can_be_held_near_the_barrier(tokenizer: StudentTokenizer) -> None:
    """The first lesson for the bus: one bit, just before the note is written, used at once."""
    for document in nano(40, *ALL_COINED, "bits=[1]", "lags=[1]", "barrier_tokens=6"):
        lanes = tokenize_document(document.taught, NANO, tokenizer).lanes
        for dependency in document.taught.answer.dependencies:
            lane = lanes[dependency.owner.lane]
            last = lane.tokens_of_quote(dependency.owner.quote)[-1]
            assert 31 - last % 32 <= 6


@pytest.mark.paper("§4.2")
def test_documents_without_dependencies_stay_so() -> None:
    kinds: Counter[str] = Counter()
    for document in nano(400):
        dependencies = document.taught.answer.dependencies
        if not dependencies:
            kinds["none"] += 1
        else:
            kinds["coined" if dependencies[0].coined else "fact"] += 1
    assert math.isclose(kinds["coined"] / 400, 0.5, abs_tol=0.1)
    assert math.isclose(kinds["fact"] / 400, 0.25, abs_tol=0.1)
    assert math.isclose(kinds["none"] / 400, 0.25, abs_tol=0.1)
    assert not any(
        d.taught.answer.dependencies for d in nano(20, "coined_share=0", "ordinary_share=0")
    )


@pytest.mark.paper("Table 1")
def test_splits_never_share_an_event_whatever_their_seeds() -> None:
    titles: dict[Split, set[str]] = defaultdict(set)
    for split in Split:
        for seed in (0, 1, 2):
            for document in nano(60, seed=seed, split=split):
                titles[split].add(document.world.title)
                assert split_of_event(document.world.title) is split
    assert not titles[Split.TRAIN] & titles[Split.TEST]
    assert not titles[Split.TRAIN] & titles[Split.VALIDATION]
    assert not titles[Split.VALIDATION] & titles[Split.TEST]


def test_the_test_split_holds_phrasings_and_combinations_unseen_in_training() -> None:
    held = ("Some months before the", "In the middle of the", "without much delay")
    counts: dict[Split, Counter[str]] = {split: Counter() for split in Split}
    for split in Split:
        for document in nano(120, split=split):
            text = document.taught.article.text
            counts[split]["phrasing"] += any(phrase in text for phrase in held)
            world = document.world
            counts[split]["deed"] += any(held_out_deed(world.category, f.deed) for f in world.facts)
    assert counts[Split.TRAIN] == counts[Split.VALIDATION] == {"phrasing": 0, "deed": 0}
    assert min(counts[Split.TEST].values()) > 20


@needs_qwen
@pytest.mark.paper("Table 1", "§4.2")
def test_canonical_documents_keep_every_rule_with_the_real_tokenizer() -> None:
    config = load_config("canonical")
    tokenizer = load_tokenizer(config.records.tokenizer)
    chronicle = Chronicle(0, Split.TRAIN, SIZES["canonical"], Meter(tokenizer))
    for document in chronicle.documents(24):
        assert failures(document, config, tokenizer) == []
        article = document.taught.article
        paragraphs = [paragraph for _, paragraph in article.paragraphs()]
        marks = [name for paragraph in paragraphs for name in paragraph.citation_ids]
        assert len({section.path for section in article.sections if section.path}) >= 6
        assert len(marks) >= 30
        assert len(article.citations) >= 15
        assert sum(bool(p.citation_ids) for p in paragraphs) >= 0.7 * len(paragraphs)
        assert max(Counter(marks).values()) <= 0.25 * len(marks)


@needs_qwen
def test_canonical_prose_is_not_filler() -> None:
    """Hardly a sentence of a long article or answer stands in it twice."""
    tokenizer = load_tokenizer(load_config("canonical").records.tokenizer)
    chronicle = Chronicle(0, Split.TRAIN, SIZES["canonical"], Meter(tokenizer))
    for document in chronicle.documents(8):
        for text in (
            document.taught.article.text,
            *(s.text for s in document.taught.answer.sections),
        ):
            sentences = Counter(text.replace("\n\n", " ").split(". "))
            assert sum(sentences.values()) - len(sentences) <= 1


DEALT = [
    "divisions=[dealt]",
    "openings=false",
    "source_words=1",
    "facts={min: 4, max: 12}",
    "fact_nodes=8",
    "names=parts",
    "cue_first=true",
    "cue_share=0.34",
    "other_facts=3",
    "asides=1",
    "coined_share=0",
    "ordinary_share=0",
    "source_tokens={min: 60, max: 900}",
    "section_tokens={min: 16, max: 400}",
]


def dealt(count: int, *dials: str, split: Split = Split.TRAIN) -> list[ChronicleDocument]:
    tokenizer = load_tokenizer(load_config("nano-2").records.tokenizer)
    chronicle = Chronicle(3, split, turn_dials("nano", [*DEALT, *dials]), Meter(tokenizer))
    return list(chronicle.documents(count))


@pytest.mark.paper("§2.1", "§4.2")
def test_documents_of_dealt_facts_keep_every_rule() -> None:
    config = load_config("nano-2")
    student = load_tokenizer(config.records.tokenizer)
    for document in dealt(60):
        assert failures(document, config, student) == []


@pytest.mark.paper("§2.1")
def test_neither_source_nor_request_tells_how_facts_were_dealt() -> None:
    """Dealt again, the same source and request would have other owners and another order."""
    follows_source = 0
    documents = dealt(80)
    for document in documents:
        answer = document.taught.answer
        assert not re.search("phase|theme|party|people|money|places|before|first", answer.request)
        order = {fact.id: n for n, fact in enumerate(document.taught.inventory.facts)}
        told = [
            [order[f] for node in plan.nodes for f in node.owned_facts] for plan in answer.plans
        ]
        follows_source += all(lane == sorted(lane) for lane in told)
        for plan, section in zip(answer.plans, answer.sections, strict=True):
            assert len(section.paragraphs) == len(plan.nodes)
            assert all(node.owned_facts for node in plan.nodes)  # no node opens or closes
    assert follows_source < 0.4 * len(documents)


def test_a_section_tells_a_fact_in_the_words_of_the_source() -> None:
    for document in dealt(20):
        taught = document.taught
        quotes = {fact.id: fact.quote.text for fact in taught.inventory.facts}
        for plan, section in zip(taught.answer.plans, taught.answer.sections, strict=True):
            for node, paragraph in zip(plan.nodes, section.paragraphs, strict=True):
                assert all(quotes[fact] in paragraph for fact in node.owned_facts)


def test_facts_are_told_cue_first_doer_first_and_thing_first() -> None:
    quotes = [fact.quote.text for d in dealt(30) for fact in d.taught.inventory.facts]
    cue = sum(quote.startswith("As for") for quote in quotes)
    passive = sum(" was " in quote and " by the " in quote for quote in quotes)
    assert 0.2 < cue / len(quotes) < 0.5
    assert 0.1 < passive / len(quotes) < 0.4


@pytest.mark.paper("§4.1")
def test_names_that_are_kept_from_training_are_made_of_pieces_that_it_has() -> None:
    tokenizer = load_tokenizer(load_config("nano-2").records.tokenizer)

    def pieces(documents: list[ChronicleDocument]) -> tuple[set[str], set[int]]:
        worlds = [document.world for document in documents]
        names = {name for w in worlds for name in (w.place, *(party.place for party in w.parties))}
        return names, {piece for name in names for piece in tokenizer.encode(f" {name}").ids}

    seen, known = pieces(dealt(400))
    unseen, used = pieces(dealt(60, "names=unseen", split=Split.TEST))
    assert not seen & unseen
    assert used <= known


def test_another_event_is_told_beside_the_one_that_is_asked_about() -> None:
    beside = [d for d in dealt(40) if len(_events(d.taught.article.text)) > 1]
    assert len(beside) > 10
    for document in beside:
        stated = {fact.quote.text for fact in document.taught.inventory.facts}
        assert len(stated) == len(document.world.facts)


def _events(text: str) -> set[str]:
    return set(re.findall(r"The [^.]+? (?:began in|lasted from|took place in the years)", text))
