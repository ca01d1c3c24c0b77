"""The teacher that needs no language model, and the corpus of real prose it teaches."""

import gzip
import random
from collections import Counter
from pathlib import Path

import pytest

from pdt.errors import BindingMismatch, CorruptFile, UsageError
from pdt.extractive.alter import altered
from pdt.extractive.claims import read_claims
from pdt.extractive.divide import DIVISIONS
from pdt.extractive.reading import read_texts
from pdt.extractive.sources import split_of, without_doubles
from pdt.extractive.texts import clean_paragraph, family_of
from pdt.extractive.wikitext import read_pages, units_of
from pdt.records.pipeline.prose import ProseCorpus, write_corpus
from pdt.records.pipeline.teachers import extractive
from pdt.sentences.split import split_sentences
from pdt.sources.article import Article, ArticleSection, Paragraph
from pdt.teacher.document import TaughtDocument
from pdt.teacher.interface import Taught, TeachingSource, teach
from pdt.terms import FactRole, Split
from tests.support.prose_samples import dossier, prose_config, write_data_file


def article(*paragraphs: str) -> Article:
    found = tuple(Paragraph(id=f"p{n}", text=text) for n, text in enumerate(paragraphs))
    return Article(
        bundle_id="0" * 64, title="Notes", sections=(ArticleSection(path=(), paragraphs=found),)
    )


def taught(config_overrides: tuple[str, ...], *, headed: bool = True) -> TaughtDocument:
    source = TeachingSource(
        record_id="r1", split=Split.TRAIN, family_key="f", category="dossier",
        article=dossier(5, headed=headed),
    )  # fmt: skip
    result = teach(extractive(prose_config(*config_overrides)), source)
    assert isinstance(result, Taught), result
    return result.value


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Dr. J. K. Lund came. He left.", 2),
        ("It is in the U.S. and lies by St. Ives. Nobody knows.", 2),
        ('He said "stop." Then he went.', 2),
        ("The No. 4 line opened at 3.5 km in 1994.", 1),
    ],
)
def test_a_sentence_ends_at_its_mark_and_not_at_an_abbreviation(text: str, count: int) -> None:
    assert len(split_sentences(text)) == count
    assert " ".join(split_sentences(text)) == text


def test_a_leading_pronoun_is_resolved_where_it_can_stand_for_nothing_else() -> None:
    source = article(
        "Mona Reed (born 1966) is an English actor from York. She plays the cello in an orchestra "
        "of Leeds. Her first film was made in Oslo in 1990. In 2016, she moved to Paris with her "
        "sons.",
        "Red Banner is an album by the band Kestrel of Hull. He sings on nine songs of the record "
        "in French. However, the record sold badly in Spain in 1994.",
    )
    assert [claim.statement for claim in read_claims(source)] == [
        "Mona Reed is an English actor from York.",
        "Mona Reed plays the cello in an orchestra of Leeds.",
        "Mona Reed's first film was made in Oslo in 1990.",
        "In 2016, Mona Reed moved to Paris with her sons.",
        "Red Banner is an album by the band Kestrel of Hull.",
    ]


def test_a_hard_negative_changes_one_value_and_is_not_what_the_source_says() -> None:
    statement = "Alder Hill had 1,204 residents in May 1990, said Ada Marlow."
    source = f"{statement} Alder Hill had 1,204 residents in May 1991, said Ada Marlow."
    for seed in range(40):
        negative = altered(random.Random(seed), statement, ["Bruno Lund", "Oslo"], source)
        assert negative is not None
        assert negative.statement == statement.replace(negative.original, negative.replacement)
        assert negative.statement not in source


@pytest.mark.parametrize("division", sorted(DIVISIONS))
@pytest.mark.parametrize("headed", [True, False])
@pytest.mark.paper("§4.2")
def test_every_division_gives_each_fact_to_one_lane_in_plan_order(
    division: str, headed: bool
) -> None:
    weights = ", ".join(f"{name}: {int(name == division)}" for name in DIVISIONS)
    document = taught((f"teacher.extractive.divisions={{{weights}}}",), headed=headed)
    assert document.teacher.settings["division"] == division
    owned = [
        fact for plan in document.answer.plans for node in plan.nodes for fact in node.owned_facts
    ]
    assert sorted(owned) == sorted(fact.id for fact in document.inventory.facts)
    for lane, plan in enumerate(document.answer.plans):
        starts = [
            role.lanes[lane].quotes[0].start
            for node in plan.nodes
            for fact in node.owned_facts
            for role in document.answer.roles
            if role.fact_id == fact and role.lanes[lane].role is FactRole.OWNER
        ]
        assert starts == sorted(starts) and starts[0] == 0


@pytest.mark.parametrize("weights", [[1], [0, 1], [0, 0, 1]])
def test_nodes_are_of_as_many_facts_as_the_dial_says(weights: list[int]) -> None:
    """A lane's last node takes what is left."""
    document = taught((f"teacher.extractive.node_facts={weights}",), headed=False)
    for plan in document.answer.plans:
        sizes = [len(node.owned_facts) for node in plan.nodes]
        assert set(sizes[:-1]) <= {len(weights)} and sizes[-1] <= len(weights)


def test_what_is_dealt_follows_from_nothing_but_the_plan() -> None:
    """Two seeds divide one source otherwise, though neither request says how."""
    zero = ", ".join(f"{name}: 0" for name in DIVISIONS if name != "dealt")
    dealt = f"teacher.extractive.divisions={{dealt: 1, {zero}}}"
    one, two = (taught((dealt, f"teacher.extractive.seed={seed}")) for seed in (1, 2))
    assert [r.lanes for r in one.answer.roles] != [r.lanes for r in two.answer.roles]
    for document in (one, two):
        words = set(document.answer.request.casefold().split())
        titles = {s.path[-1].casefold() for s in document.article.sections}
        assert not any(title in " ".join(words) for title in titles)


@pytest.mark.paper("§7.3")
def test_a_house_style_is_a_coined_choice_of_known_bits_that_all_sections_make_alike() -> None:
    found: Counter[str] = Counter()
    for seed in range(12):
        document = taught(("teacher.extractive.style_share=1", f"teacher.extractive.seed={seed}"))
        for link in document.answer.dependencies:
            choice = link.coined
            assert choice is not None and 2**choice.entropy_bits == len(choice.alternatives)
            assert link.owner.quote.text == link.receiver.quote.text == choice.text
            assert link.owner.lane == document.answer.lane_at_position[0]
            assert choice.text not in document.article.text
            found[choice.choice_id] += 1
    assert {"source_word", "spelling", "subject_word", "numerals"} <= set(found)


def test_relatives_fall_into_one_split_and_doubles_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert family_of("Ed Wood") == family_of("Ed Wood (film)") == family_of("ED  WOOD")
    write_data_file(tmp_path / "texts", monkeypatch)
    texts = without_doubles(list(read_texts(tmp_path / "texts")))
    assert len(texts) == len(without_doubles(texts + texts))
    shares = prose_config().sources.splits
    fallen = Counter(split_of(text.family, shares) for text in texts)
    assert fallen[Split.TRAIN] > fallen[Split.TEST] > 0


def test_a_paragraph_with_markup_or_a_cut_end_is_left_out_whole() -> None:
    assert (
        clean_paragraph("It lies  in Kent ( ; German: Kent) .") == "It lies in Kent (German: Kent)."
    )
    for bad in ("It lies in [[Kent]].", "It lies in", "It costs {{price}}.", 'He said "no.'):
        assert clean_paragraph(bad) is None


def test_an_article_of_a_dump_comes_out_whole_as_prose_under_its_headings(tmp_path: Path) -> None:
    prose = (
        "The [[Ostrow|river Ostrow]] is ''long''.<ref>x</ref> It has {{convert|3|km}} banks. " * 14
    )
    page = f"""{{{{Infobox}}}}\n[[Image:a.jpg|thumb|A [[b]].]]\n{prose}\n\n* a list\n\n== Course ==
{prose}\n=== Mouth ===\n{prose}\n== See also ==\n* [[x]]\n"""
    escaped = page.replace("<", "&lt;").replace(">", "&gt;")
    dump = tmp_path / "enwik8.gz"
    with gzip.open(dump, "wt", encoding="utf-8") as file:
        for title in ("Ostrow", "Talk:Ostrow"):
            file.write(f"<page>\n<title>{title}</title>\n<text>{escaped}</text>\n</page>\n")
        file.write("<page><title>Cut</title><text>and then")
    ((title, text),) = read_pages(dump)
    (sections,) = units_of(text)
    assert title == "Ostrow"
    assert [section.heading for section in sections] == [None, "Course", "Mouth"]
    assert all(s.paragraphs[0].startswith("The river Ostrow is long. It has") for s in sections)
    assert list(units_of(page.replace("banks", "banks <math>x</math>"))) == []


def test_a_killed_corpus_goes_on_to_the_same_bytes_and_names_its_licences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pdt.records.pipeline.prose.PART", 4)
    texts = tmp_path / "texts"
    write_data_file(texts, monkeypatch)
    config = prose_config("sources.dossiers.kinds={dossier: 1}")
    whole = ProseCorpus(texts, tmp_path / "whole", config, Split.TRAIN, 8)
    counts = write_corpus(whole)
    assert counts["documents"] + counts["untaught"] == 8 and counts["documents"] > 0
    again = ProseCorpus(texts, tmp_path / "again", config, Split.TRAIN, 8)
    (tmp_path / "again" / "parts").mkdir(parents=True)
    again.run(1)  # one part was whole when the run was killed
    write_corpus(again, resume=True)
    for name in ("documents.jsonl",):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert "CC BY-SA 4.0" in (tmp_path / "whole" / "manifest.json").read_text(encoding="utf-8")
    other = ProseCorpus(texts, tmp_path / "again", config, Split.TEST, 8)
    with pytest.raises(BindingMismatch, match="other texts or settings"):
        write_corpus(other, resume=True)


def test_texts_that_are_missing_or_changed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="pdt corpus take"):
        list(read_texts(tmp_path))
    write_data_file(tmp_path / "texts", monkeypatch)
    with (tmp_path / "texts" / "hotpotqa.json").open("a") as file:
        file.write(" ")
    with pytest.raises(CorruptFile, match="not the file"):
        list(read_texts(tmp_path / "texts"))
