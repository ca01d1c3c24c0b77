"""Occurrences, notes, folding into works, and why a work counts as scholarly."""

from typing import Any

import pytest

from pdt.sources.citations import citation_id
from pdt.sources.reading import PageReading, read_page
from pdt.sources.scholarly import scholarly_reason
from pdt.sources.templates import maintenance_in, templates_in_wikitext
from tests.support.parsoid_samples import LIMITS, mark, note, notes, page, section, template
from tests.support.wiki_material import WIKI, needs_wiki

pytestmark = pytest.mark.paper("Table 1")


def read(*paragraphs: str, entries: list[str] | None = None, more: str = "") -> PageReading:
    body = section("".join(f"<p>{text}</p>" for text in paragraphs), heading="Course")
    body += section(notes(*(entries or [])) + more, heading="References", number=9)
    return read_page(page(body), LIMITS, where="a test")


def works_of(*texts: str, more: str = "") -> list[str]:
    """The work of each of some footnotes."""
    names = [f"cite_note-{n}" for n in range(len(texts))]
    text = "Text." + "".join(map(mark, names))
    entries = [note(name, content) for name, content in zip(names, texts, strict=True)]
    reading = read(text, entries=entries, more=more)
    return [reading.works_of_note[name][0] for name in names]


def test_occurrences_count_on_kept_paragraphs_only() -> None:
    table = f"<table><tbody><tr><td>x{mark('cite_note-1')}</td></tr></tbody></table>"
    reading = read(
        f"One{mark('cite_note-1')} two{mark('cite_note-1')}.</p>{table}<p>Three.",
        entries=[note("cite_note-1", "A work.")],
    )
    assert reading.occurrences == ["cite_note-1", "cite_note-1"]


def test_a_page_superscript_is_not_a_citation() -> None:
    pages = template("rp", ":26", tag="sup")
    reading = read(f"One{mark('cite_note-1')}{pages}.", entries=[note("cite_note-1", "A work.")])
    assert len(reading.occurrences) == 1
    assert reading.paragraphs[0][1].line.text == "One."


def test_a_citation_that_a_template_made_counts() -> None:
    made = mark("cite_note-1").replace('"mw:Extension/ref"', '"mw:Transclusion mw:Extension/ref"')
    inside = template("convert", f"5 km{mark('cite_note-1', '2')}")
    reading = read(f"One{made}, {inside}.", entries=[note("cite_note-1", "A work.")])
    assert len(reading.occurrences) == 2


def test_a_remark_in_a_named_group_cites_only_what_it_holds() -> None:
    cite = '<cite class="citation book">Henze (1990). Layers.</cite>'
    reading = read(
        f"A{mark('cite_note-a')} b{mark('cite_note-b')} c{mark('cite_note-c')}.",
        entries=[
            note("cite_note-a", "Roughly a duke.", group="nb"),
            note("cite_note-b", f"See {cite}", group="nb"),
            note("cite_note-c", "Henze, p. 3."),
        ],
    )
    assert reading.occurrences == ["cite_note-b", "cite_note-c"]


def test_a_sub_reference_cites_the_work_of_its_main_note() -> None:
    sub = f'<ol class="mw-subreference-list">{note("cite_note-2", "p. 123")}</ol>'
    reading = read(
        f"A{mark('cite_note-1')} b{mark('cite_note-2')}.",
        entries=[note("cite_note-1", "Henze, P. <i>Layers of Time</i>. 2004.", inside=sub)],
    )
    assert reading.works_of_note["cite_note-1"] == reading.works_of_note["cite_note-2"]


def test_short_footnotes_fold_into_the_full_citation() -> None:
    full = "Henze, P.B. (2004) <i>Layers of Time: A History of Ethiopia</i>, London: Hurst & Co."
    a, b, c, d = works_of(
        full, "Henze, p. 180.", "Henze, <i>Layers of Time</i>, pp. 3–7.", "Marcus, p. 9."
    )
    assert a == b == c != d


def test_short_footnotes_with_an_anchor_fold_into_the_bibliography() -> None:
    cite = '<cite id="CITEREFShaw1976" class="citation">Shaw (1976). History. Cambridge.</cite>'
    short = '<a href="./Page#CITEREFShaw1976">Shaw 1976</a>, p. {}.'
    a, b = works_of(short.format(3), short.format(9), more=f"<ul><li>{cite}</li></ul>")
    assert a == b


def test_two_works_of_one_author_stay_apart_by_year_or_title() -> None:
    first = "Marcus, H. (1995) <i>The Life and Times of Menelik: Ethiopia 1844–1913</i>. Red Sea."
    second = "Marcus, H. (1994) <i>A History of Ethiopia, from the beginning on</i>. California."
    a, b, c, d, e = works_of(
        first, second, "Marcus 1995, p. 1", "Marcus, Life and Times, p. 2", "Marcus, p. 3"
    )
    assert c == a != b
    assert d == a
    assert e not in (a, b)  # nothing says which; it is not given to either


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A. <i>X</i>. ISBN 1-85065-522-7", "A, X: ISBN 978-1-85065-522-0, p. 5"),
        (
            'A. <a href="https://doi.org/10.2307/12">X</a>',
            'B, "X", <a href="http://dx.doi.org/10.2307/12">doi:10.2307/12</a>',
        ),
        (
            '<a href="https://www.example.org/a/">X</a>',
            '<a href="http://web.archive.org/web/2011/http://example.org/a">X, archived</a>',
        ),
        ("Gibbon, Decline and Fall, vol. 3, p. 12", "Gibbon, Decline and Fall, vol. 3, pp. 40–41"),
    ],
)
def test_one_work_is_one_work_however_it_is_spelled(one: str, other: str) -> None:
    a, b = works_of(one, other)
    assert a == b


def test_a_footnote_with_several_citations_counts_for_each() -> None:
    cites = "".join(
        f'<cite class="citation book">Author{n} (1990). Title {n}.</cite>' for n in range(3)
    )
    reading = read(f"A{mark('cite_note-1')}.", entries=[note("cite_note-1", cites)])
    assert len(reading.works_of_note["cite_note-1"]) == 3
    assert set(reading.occurrences_of_work.values()) == {1}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('<a href="https://doi.org/10.1000/x1">X</a>', "DOI"),
        ("A. X. ISBN 978-1-85065-522-0", "ISBN"),
        ('<a href="https://www.jstor.org/stable/123">X</a>', "JSTOR"),
        ("A. (1990). X. Oxford University Press.", "university"),
        ("B. (1990). Guide. British Museum.", "museum"),
        ("C. (1990). In: Journal of Roman Studies 3.", "journal"),
        ('<a href="https://history.army.mil/x">X</a>', "public body"),
        ('<a href="https://www.dailynews.example/x">X</a>', None),
        ("D. (1990). A thriller. Penguin.", None),
    ],
)
def test_a_work_counts_as_scholarly_for_a_reason_that_is_told(
    content: str, reason: str | None
) -> None:
    reading = read(f"A{mark('cite_note-1')}.", entries=[note("cite_note-1", content)])
    (work,) = reading.works.values()
    said = scholarly_reason(work)
    assert (reason is None and said is None) or (reason or "") in (said or "nothing")


def test_parameters_of_a_template_say_who_published() -> None:
    fields: dict[str, Any] = {
        "title": "X",
        "last": "Shaw",
        "publisher": "[[Yale University Press|Yale]]",
        "journal": "[[Isis (journal)|Journal of Isis]]",
    }
    cite = template("cite journal", "Shaw. X.", tag="cite", **fields)
    cite = cite.replace("<cite ", '<cite class="citation journal cs1" ')
    reading = read(f"A{mark('cite_note-1')}.", entries=[note("cite_note-1", cite)])
    (work,) = reading.works.values()
    assert (work.publisher, work.container, work.kind) == ("Yale", "Journal of Isis", "journal")


def test_an_address_that_is_none_is_only_text() -> None:
    (one,) = works_of('<a href="https://[bad/x">Title of a page</a>, a note.')
    assert one


def test_ids_of_other_letters_stay_apart() -> None:
    assert citation_id("cite_note-Henze-12") == "cite_note-Henze-12"
    assert citation_id("cite_note-é") != citation_id("cite_note-è")


@pytest.mark.parametrize(
    ("wikitext", "families"),
    [
        ("{{Citation needed|date=May 2017}}", {"citation"}),
        ("{{ cn }} {{Refimprove section}}", {"citation"}),
        (
            "{{POV}} {{Hoax}} {{Original research}} {{disputed}}",
            {"neutrality", "hoax", "original_research", "accuracy"},
        ),
        ("{{Infobox x| a = {{clarify}} }}", {"cleanup"}),
        ("{{Use dmy dates}} {{dead link}} {{cite book|title=Fact}} {{citation|title=x}}", set()),
        ("<!-- {{citation needed}} --> <nowiki>{{POV}}</nowiki>", set()),
    ],
)
def test_maintenance_templates_are_found_in_wikitext(wikitext: str, families: set[str]) -> None:
    assert set(maintenance_in(templates_in_wikitext(wikitext))) == families


@needs_wiki
def test_sub_references_of_the_newest_markup_fold_into_their_main_notes() -> None:
    assert WIKI is not None
    html = (WIKI / "parsoid-enwiki" / "testwiki_SubReferences.673412.html").read_bytes()
    reading = read_page(html, LIMITS, where="SubReferences")
    subs = {name: note.main for name, note in reading.notes.items() if note.main is not None}
    assert subs["cite_note-2"] == "cite_note-main1-1" and subs["cite_note-4"] == "cite_note-:0-3"
    assert reading.works_of_note["cite_note-4"] == reading.works_of_note["cite_note-:0-3"]
