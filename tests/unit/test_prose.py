"""Only title, headings and prose reach the model; hostile pages neither crash nor leak."""

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode
from tools import mutate_html

from pdt.errors import SourceRefused
from pdt.sources.page import open_page
from pdt.sources.prose import Prose, read_prose
from tests.support.parsoid_samples import LIMITS, mark, page, section, template
from tests.support.wiki_material import WIKI, captured_bundles, needs_wiki

pytestmark = pytest.mark.paper("§4.1")


def prose_of(body: str) -> Prose:
    return read_prose(open_page(page(body), LIMITS, where="a test"))


def text_of(inline: str) -> str:
    """The one paragraph that `inline` makes."""
    (only,) = prose_of(section(f"<p>{inline}</p>")).sections
    return only.paragraphs[0].line.text


SOUND = '<span class="IPA">x</span>'
LISTEN = '<span class="haudio">listen</span>'


def styled(name: str, shown: str) -> str:
    """A template whose first node, which names it, is no more than its styles."""
    rest = f'<span about="#mwt90">{shown}</span>'
    return template(name, ".a{}", tag="style") + rest


@pytest.mark.parametrize(
    ("inline", "seen"),
    [
        ('the <a rel="mw:WikiLink" href="./Vell">town</a> fell', "the town fell"),
        ("a<br/>b", "a b"),
        ("five&nbsp;men &amp; a&#8203;\u00ad dog", "five men & a dog"),
        (f"held{mark('cite_note-1')}, then lost", "held, then lost"),
        ('so<sup class="reference nowrap">:26</sup> it is', "so it is"),
        ('it<sup class="noprint Inline-Template">[<i>who?</i>]</sup> was', "it was"),
        ('<span style="display: none">secret</span>seen', "seen"),
        ("<span hidden>secret</span>seen", "seen"),
        (f"Vell ({template('IPAc-en', '/vɛl/')}; born 1402) fell", "Vell (born 1402) fell"),
        (f"Vell ({template('IPAc-en', '/vɛl/')}) fell", "Vell fell"),
        (f"Vell (town, {template('IPA-fr', '[vɛl]')}) fell", "Vell (town) fell"),
        (f"at {template('coord', '1°N 2°E')}, it fell", "at, it fell"),
        (f"A {SOUND} ({LISTEN})", "A"),
        (f"Kyoto ({SOUND} {LISTEN}) is", "Kyoto is"),
        (
            f"Kyoto (京都市 {LISTEN}, <i>Kyōto-shi</i>{SOUND}, {LISTEN}) is",
            "Kyoto (京都市, Kyōto-shi) is",
        ),
        (f"Kyoto (({SOUND}), {LISTEN}) is", "Kyoto is"),
        (f"one, {SOUND}, two: {SOUND}. Three", "one, two. Three"),
        (
            f"Vell ({styled('IPA', 'German: [vɛl]')}; 14 March 1879) fell",
            "Vell (14 March 1879) fell",
        ),
        (f"at {styled('coord', '1°N 2°E')}, it fell", "at, it fell"),
        (f'Vell (<span class="IPA-label">German:</span> {SOUND}) fell', "Vell fell"),
        (f'Vell (Велл, <a href="./Help:IPA/Russian">IPA:</a> {SOUND}) fell', "Vell (Велл) fell"),
        (f"Vell (Велл, <small>IPA:</small> {SOUND}) fell", "Vell (Велл) fell"),
        ("<style>.a{}</style><script>alert(1)</script>text", "text"),
        ('<img src="x" alt="a picture"/>text', "text"),
        ("the 1<sup>st</sup> wall", "the 1st wall"),
        (
            f"walls of {template('convert', '5 metres (16 ft)')} rose",
            "walls of 5 metres (16 ft) rose",
        ),
        ("\x01con\x7ftrol\u202e", "control"),
        ("a &lt; b and 5 &gt; 4", "a < b and 5 > 4"),
    ],
)
def test_a_paragraph_is_what_a_reader_sees_without_citation_marks(inline: str, seen: str) -> None:
    assert text_of(inline) == seen


@pytest.mark.parametrize(
    ("inline", "why"),
    [
        ('Let <span class="mwe-math-element"><math><mi>G</mi></math></span> be a group.', "math"),
        ("The command <code>ls</code> lists files.", "<code>"),
    ],
)
def test_a_paragraph_that_lost_words_of_a_sentence_goes_whole_and_is_counted(
    inline: str, why: str
) -> None:
    prose = prose_of(section(f"<p>Kept.</p><p>{inline}</p>loose words"))
    (only,) = prose.sections
    assert [paragraph.line.text for paragraph in only.paragraphs] == ["Kept."]
    assert prose.left_out == {why: 1, f"paragraph with {why}": 1, "loose text": 1}


def test_all_nodes_of_a_left_out_template_go_with_it() -> None:
    rest = '<small about="#mwt90">(listen)</small>'
    assert text_of(f"Vell {template('IPAc-en', '/vɛl/')}{rest} fell") == "Vell fell"


@pytest.mark.parametrize(
    "block",
    [
        "<ul><li>item</li></ul>",
        "<table><tbody><tr><td><p>cell</p></td></tr></tbody></table>",
        '<div class="hatnote">See also</div>',
        "<blockquote><p>quoted</p></blockquote>",
        "<figure><figcaption>caption</figcaption></figure>",
        '<p about="#mwt1" typeof="mw:Transclusion" data-mw="{}">made by a template</p>',
        "<dl><dd>indented</dd></dl>",
        "<form><p>in a form</p></form>",
        "bare text",
    ],
)
def test_only_paragraphs_that_stand_in_a_section_are_kept(block: str) -> None:
    prose = prose_of(section(f"<p>kept</p>{block}"))
    assert [p.line.text for s in prose.sections for p in s.paragraphs] == ["kept"]


def test_headings_nest_and_apparatus_and_empty_ones_go() -> None:
    deep = section("<p>Deep.</p>", heading="Walls", number=2, level=3)
    body = (
        section("<p>Lead.</p>")
        + section(deep, heading="The <i>siege</i>", number=1)
        + section("<ul><li>x</li></ul>", heading="Forces", number=3)
        + section("<p>Ibid.</p>", heading="Notes", number=4)
        + '<section data-mw-section-id="5"><div class="mw-heading mw-heading2"><h2>After</h2>'
        "</div><p>Peace.</p></section>"
    )
    assert [
        ([line.text for line in s.path], [p.line.text for p in s.paragraphs])
        for s in prose_of(body).sections
    ] == [
        ([], ["Lead."]),
        (["The siege"], []),
        (["The siege", "Walls"], ["Deep."]),
        (["After"], ["Peace."]),
    ]


def resolve(tree: LexborHTMLParser, spot: str) -> LexborNode:
    """The node that a run names: an id, then child places."""
    start, *places = spot.split("/")
    node = tree.body if start == "body" else tree.css_first(f'[id="{start}"]')
    for place in places:
        assert node is not None
        node = node.first_child
        for _ in range(int(place)):
            assert node is not None
            node = node.next
    assert node is not None
    return node


def assert_traced(html: bytes) -> int:
    parsed = open_page(html, LIMITS, where="a test")
    characters = 0
    for part in read_prose(parsed).sections:
        for line in [*part.path, *(p.line for p in part.paragraphs)]:
            covered = 0
            for run in line.runs:
                assert run.start == covered
                covered = run.end
                node = resolve(parsed.tree, run.node)
                raw = (node.text_content or "") if node.is_text_node else " "
                origin = raw[run.offset : run.offset + run.end - run.start]
                kept = line.text[run.start : run.end]
                assert "".join(" " if c.isspace() else c for c in origin) == kept
                characters += len(kept)
            assert covered == len(line.text)
    return characters


def test_every_character_is_traced_to_its_node() -> None:
    sound = template("IPAc-en", "x")
    inline = f"A  <b>bold\n<i>word</i></b> ({sound}; <a href='#'>link</a>)&nbsp;.<br/> End "
    assert assert_traced(page(section(f'<p id="mwAb">{inline}</p>', heading="H <i>i</i>"))) > 20


@needs_wiki
@pytest.mark.parametrize("name", ["Battle_of_Adwa.803460684", "Battle_of_Peleliu.805867128"])
def test_every_character_of_a_real_article_is_traced_to_its_node(name: str) -> None:
    directory = next(path for path in captured_bundles() if path.name == name)
    assert assert_traced((directory / "parsoid.html").read_bytes()) > 10_000


@pytest.mark.parametrize(
    ("html", "why"),
    [
        (b"", "not Parsoid"),
        (b"<html><body>" + b"x" * 99, "not Parsoid"),
        (b'<html><div class="mw-parser-output"><p>x</p></div></html>', "older parser"),
        (page(section("<p>x</p>"))[:-9], "cut off"),
        (page(section("<p>x</p>")).replace(b"2.8.0", b"1.5.0"), "1.5"),
        (page("<p>no sections</p>"), "no Parsoid sections"),
        (page(section("<p>x</p>")).replace(b"<p>x", b"<p>\xff"), "not UTF-8"),
        (page(section("<div>" * 300 + "</div>" * 300)), "nests more than"),
        (page(section("<div>" * 20_000)), "nests more than"),
        (page(section("<b>" * 50_000 + "</i>" * 50_000)), "nests more than"),
        (page(section("<div></span>" * 5_000)), "nests|do not match"),
        (page(section('<div title="</div>">' * 5_000)), "do not match"),
        (page(section("<p>a rel=\"mw:WikiLink\" href='x'>shown</p>")), "markup in its text"),
        (page(section("<p>x &lt;script&gt; y</p>")), "markup in its text"),
        (page(section('<p>","i":0}}]} "wt": "x"</p>')), "markup in its text"),
    ],
)
def test_what_is_not_one_whole_parsoid_page_is_refused_at_once(html: bytes, why: str) -> None:
    with pytest.raises(SourceRefused, match=why):
        read_prose(open_page(html, LIMITS, where="a test"))


def test_an_enormous_page_is_refused_before_it_is_parsed() -> None:
    small = LIMITS.model_copy(update={"bytes": 1000})
    with pytest.raises(SourceRefused, match="more than 1,000"):
        open_page(page(section("<p>" + "x" * 1000 + "</p>")), small, where="a test")


@needs_wiki
def test_damaged_pages_are_read_or_refused_and_never_crash_or_leak() -> None:
    """A few of what `tools/mutate_html.py` runs by the ten thousand."""
    assert WIKI is not None
    pages = mutate_html.small_pages(WIKI)
    result = mutate_html.run(pages, range(1_000_000, 1_000_150), seed=1729)
    assert result["failures"] == []
    assert len(pages) >= 5


def test_damage_to_a_page_of_our_own_is_read_or_refused() -> None:
    text = f"The siege{mark('cite_note-1')} of <a href='./Vell'>Vell</a> was long. "
    html = page("".join(section(f"<p>{text * 5}</p>" * 3, heading=f"H{n}") for n in range(5)))
    assert mutate_html.run([("own", html)], range(300), seed=3)["failures"] == []


def test_the_check_for_leaks_finds_a_leak() -> None:
    assert (
        mutate_html.LEAK.search('x id="mwAb">y')
        and mutate_html.LEAK.search("a <b>c")
        and mutate_html.LEAK.search("&amp;")
    )
    assert not mutate_html.LEAK.search("5 < 6, A&B; the title is set")
