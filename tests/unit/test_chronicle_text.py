"""Chronicle as a text: grammar, markup, determinism, dials."""

import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import pytest

from pdt.chronicle import Chronicle, ChronicleDocument
from pdt.chronicle.categories import CATEGORIES
from pdt.chronicle.deeds import Phase, Theme
from pdt.chronicle.dials import SIZES, turn_dials
from pdt.chronicle.meter import nano_meter
from pdt.chronicle.names import BODIES, COINED, GIVEN, PLACES, SURNAMES
from pdt.chronicle.phrasing import REMARKS, SHORT
from pdt.chronicle.request import BY_PARTY, BY_PHASE, BY_THEME
from pdt.chronicle.world import draw_world
from pdt.config import load_config
from pdt.errors import ConfigError, PdtError, UsageError
from pdt.provenance import sha256_json
from pdt.sources.bundle import read_bundle, write_bundle
from pdt.terms import Split
from pdt.tokenizer import load_tokenizer

NANO = SIZES["nano"]
PRINT_DIGEST = """
from pdt.provenance import sha256_json
from pdt.chronicle.dials import SIZES
from pdt.chronicle.meter import nano_meter
from pdt.chronicle import Chronicle
from pdt.terms import Split
documents = Chronicle(7, Split.TRAIN, SIZES["nano"], nano_meter()).documents(5)
print(sha256_json([d.taught.model_dump(mode="json") for d in documents]))
"""


def corpus(count: int, *, seed: int = 0, split: Split = Split.TRAIN) -> list[ChronicleDocument]:
    return list(Chronicle(seed, split, NANO, nano_meter()).documents(count))


@pytest.fixture(scope="module")
def documents() -> list[ChronicleDocument]:
    return corpus(120) + corpus(60, split=Split.TEST)


def texts_of(document: ChronicleDocument) -> list[str]:
    answer = document.taught.answer
    paragraphs = [p.text for _, p in document.taught.article.paragraphs()]
    sections = [text for section in answer.sections for text in section.paragraphs]
    return [*paragraphs, answer.request, *sections]


def test_every_category_has_one_deed_of_its_own_for_each_phase_and_theme() -> None:
    assert len(CATEGORIES) == 8
    cells = [(phase, theme) for phase in Phase for theme in Theme]
    for category in CATEGORIES:
        assert sorted((d.phase, d.theme) for d in category.own_deeds) == cells
        shared = Counter((d.phase, d.theme) for d in category.deeds if d.shared)
        assert shared == dict.fromkeys(cells, 5)


def test_every_cue_names_one_deed_only() -> None:
    cues = {(d.cue, d.before_value) for category in CATEGORIES for d in category.deeds}
    assert len(cues) == len({cue for cue, _ in cues}) == 8 * 9 + 45


def test_the_same_seed_gives_the_same_documents_in_another_process() -> None:
    here = [d.taught.model_dump(mode="json") for d in corpus(5, seed=7)]
    run = subprocess.run(
        [sys.executable, "-c", PRINT_DIGEST],
        env={"PYTHONHASHSEED": "123", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == sha256_json(here)


def test_another_seed_and_another_index_give_another_document() -> None:
    titles = {d.world.title for seed in range(5) for d in corpus(10, seed=seed)}
    assert len(titles) >= 49


def test_articles_and_verbs_agree_with_what_follows(documents: list[ChronicleDocument]) -> None:
    vowel = re.compile(r"\b[Aa] [aeiouAEIOU]|\b[Aa]n [^aeiouAEIOU]")
    doubled = re.compile(r"\b(\w+) \1\b", re.IGNORECASE)
    for document in documents:
        for text in texts_of(document):
            assert not vowel.search(text), text
            assert not doubled.search(text), text
            assert not re.search(r" [,.;:]|  |,,|\.\.|[{}<>|]", text), text
            for sentence in re.split(r"(?<=[.:]) (?=[A-Z])", text):
                assert sentence[0].isupper(), text
                assert sentence[-1] in ".:", text


@pytest.mark.paper("§7.2")
def test_no_sentence_of_a_section_is_short(documents: list[ChronicleDocument]) -> None:
    for document in documents:
        for section in document.taught.answer.sections:
            for text in section.paragraphs:
                for sentence in re.split(r"(?<=[.?!]) (?=[A-Z])", text):
                    assert len(sentence.split()) >= 8, sentence


def test_a_fact_has_several_wordings(documents: list[ChronicleDocument]) -> None:
    """Masking the values, the loan is told in many ways."""
    told = set()
    for document in corpus(400):
        for fact in document.taught.inventory.facts:
            if "loan of" in fact.statement:
                roles = next(r for r in document.taught.answer.roles if r.fact_id == fact.id)
                quote = next(q.text for lane in roles.lanes for q in lane.quotes)
                told.add(re.sub(r"[A-Z]\w+ |\d+", "", quote))
    assert len(told) >= 12


def test_dates_do_not_contradict_the_event() -> None:
    for index in range(200):
        world = draw_world(3, index, Split.TRAIN, SIZES["canonical"])
        assert world.began < world.ended
        for fact in world.facts:
            if fact.deed.phase is Phase.BEFORE:
                assert fact.year < world.began
            elif fact.deed.phase is Phase.DURING:
                assert world.began <= fact.year <= world.ended
            else:
                assert fact.year > world.ended


def test_the_nano_vocabulary_is_closed_and_small(documents: list[ChronicleDocument]) -> None:
    words = {
        word
        for document in documents + corpus(400, seed=9)
        for text in [*texts_of(document), document.taught.article.text]
        for word in re.findall(r"[A-Za-z]+", text)
    }
    tokenizer = nano_meter().tokenizer
    assert len(words) <= 1500
    split_words = {word for word in words if len(tokenizer.encode(f" {word}").ids) > 1}
    assert len(split_words) <= 12  # words that only ever begin a paragraph
    for name in (*COINED, *GIVEN, *SURNAMES, *PLACES, *BODIES):
        assert len(tokenizer.encode(f" {name}").ids) == 1, name
    assert all(text.isascii() for document in documents for text in texts_of(document))


def test_values_come_from_pools_too_large_to_guess() -> None:
    assert len(set(GIVEN)) * len(set(SURNAMES)) == 4096
    assert len(set(PLACES)) == 128
    assert len(set(COINED)) == 256


def test_values_never_repeat_within_a_world(documents: list[ChronicleDocument]) -> None:
    for document in documents:
        facts = document.world.facts
        values = [v for fact in facts for v in (fact.value, fact.false_value)]
        assert len(set(values)) == len(values)


class ProseReader(HTMLParser):
    """Headings and paragraphs of Parsoid-style HTML, without citation marks."""

    def __init__(self) -> None:
        super().__init__()
        self.prose: list[str] = []
        self.marks = 0
        self._inside = ""
        self._skip = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("p", "h2"):
            self._inside = tag
            self.prose.append("")
        if tag == "sup":
            assert dict(attrs)["typeof"] == "mw:Extension/ref"
            self.marks += 1
            self._skip += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""
        if tag == "sup":
            self._skip -= 1

    def handle_data(self, data: str) -> None:
        if self._inside and not self._skip:
            self.prose[-1] += data


@pytest.mark.paper("§4.1")
def test_the_html_and_the_wikitext_say_what_the_article_says(
    documents: list[ChronicleDocument],
) -> None:
    for document in documents[:40]:
        article, raw = document.taught.article, document.source.raw
        reader = ProseReader()
        reader.feed(raw["html"].decode())
        expected = [
            text
            for section in article.sections
            for text in [*section.path, *(p.text for p in section.paragraphs)]
        ]
        assert reader.prose == [*expected, "References"]
        assert reader.marks == raw["wikitext"].decode().count("<ref ")
        plain = re.sub(r"<ref [^>]*/>|<ref [^>]*>.*?</ref>", "", raw["wikitext"].decode())
        for _, paragraph in article.paragraphs():
            assert paragraph.text in plain
            assert paragraph.citation_ids


@pytest.mark.paper("§4.1")
def test_a_chronicle_source_is_an_immutable_bundle_like_any_other(
    tmp_path: Path, documents: list[ChronicleDocument]
) -> None:
    source = documents[0].source
    where = write_bundle(tmp_path, source.bundle, source.raw)
    assert read_bundle(where) == source.bundle
    assert documents[0].taught.article.bundle_id == source.bundle.bundle_id


def test_the_tokenizer_in_the_package_is_what_the_command_makes() -> None:
    from pdt.chronicle.tokenizer import build_tokenizer
    from pdt.chronicle.vocabulary import NANO, texts_of

    texts = list(texts_of(NANO, 60))
    assert build_tokenizer(texts, most=2048) == build_tokenizer(texts, most=2048)
    with pytest.raises(UsageError, match=r"Raise trunk\.shape\.vocabulary"):
        build_tokenizer(texts, most=500)
    nano = load_config("nano")
    assert load_tokenizer(nano.records.tokenizer).vocabulary <= nano.trunk.shape.vocabulary


@pytest.mark.slow
def test_the_tokenizer_in_the_package_is_made_again_byte_for_byte() -> None:
    from pdt.chronicle.vocabulary import make_tokenizer

    most = load_config("nano").trunk.shape.vocabulary
    packaged = resources.files("pdt") / "tokenizers" / "nano.tokenizer.json"
    assert make_tokenizer("nano", most=most) == packaged.read_text(encoding="utf-8")


def test_a_dial_that_cannot_be_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="Sizes: nano, small, canonical"):
        turn_dials("huge")
    with pytest.raises(ConfigError, match=r"bits.*\n.*Dials: "):
        turn_dials("nano", ["bits=[9]"])
    with pytest.raises(ConfigError, match="colour"):
        turn_dials("nano", ["colour=red"])
    with pytest.raises(ConfigError, match="more than 1"):
        turn_dials("nano", ["coined_share=0.9"])


def test_a_lag_longer_than_the_sections_is_refused_with_the_remedy() -> None:
    dials = turn_dials("nano", ["lags=[9]", "coined_share=1", "ordinary_share=0"])
    with pytest.raises(PdtError, match="allow shorter lags, longer sections"):
        Chronicle(0, Split.TRAIN, dials, nano_meter()).document(0)


def test_with_cues_first_a_fact_is_told_behind_its_cue_by_its_doer_in_full() -> None:
    dials = turn_dials("nano", ["cue_first=true"])
    for document in Chronicle(0, Split.TRAIN, dials, nano_meter()).documents(20):
        facts, taught = document.world.facts, document.taught
        texts = [taught.article.text, *(s.text for s in taught.answer.sections)]
        for fact in facts:
            doer = document.world.parties[fact.party].full
            sentence = f"s for the {fact.deed.cue}, {doer} "
            assert [text.count(sentence) for text in texts].count(1) == 2
        for plan, section in zip(taught.answer.plans, taught.answer.sections, strict=True):
            told = [
                text.split()[0]
                for node, text in zip(plan.nodes, section.paragraphs, strict=True)
                if node.owned_facts
            ]
            assert told == ["First,", *["Then,"] * (len(told) - 2), "Last,"][: len(told)]
    with pytest.raises(ConfigError, match="cue_first tells bare facts"):
        turn_dials("small", ["cue_first=true"])


def test_a_request_divides_only_as_the_dial_allows() -> None:
    def divisions(setting: list[str]) -> set[object]:
        chronicle = Chronicle(0, Split.TRAIN, turn_dials("nano", setting), nano_meter())
        return {d.taught.teacher.settings["division"] for d in chronicle.documents(30)}

    assert divisions([]) == {"phase", "theme", "party"}
    assert divisions(["divisions=[phase, theme]"]) == {"phase", "theme"}
    with pytest.raises(ConfigError, match="at least one value"):
        turn_dials("nano", ["divisions=[]"])


@pytest.mark.parametrize("pool", [BY_PHASE, BY_THEME, BY_PARTY])
def test_a_held_out_request_is_a_new_sentence_of_known_words(pool: tuple[str, ...]) -> None:
    def words(forms: tuple[str, ...]) -> set[str]:
        return {word.casefold() for form in forms for word in re.findall(r"\w+", form)}

    training = words(BY_PHASE[:-1] + BY_THEME[:-1] + BY_PARTY[:-1])
    assert pool[-1] not in pool[:-1] and words(pool[-1:]) <= training


def test_no_remark_can_stop_early() -> None:
    remarks = [re.findall(r"\w+", remark) for pool in REMARKS.values() for remark in pool]
    last_words = {remark[-1] for remark in remarks}
    assert all(len(remark) >= SHORT for remark in remarks)
    # Three words are an adverb ("For many years"), four can be a sentence.
    early = {" ".join(r[:n]) for r in remarks for n in range(4, SHORT) if r[n - 1] in last_words}
    assert not early
