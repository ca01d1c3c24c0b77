"""What prose could get wrong, a check keeps right."""

import re
from functools import cache
from pathlib import Path

import pytest
from tools import generate_docs, paper_map
from tools.generate_docs import PAPER
from tools.paper_map import Row
from tools.passages import (
    LABELS,
    NOT_YET,
    PASSAGES,
    UnknownPassage,
    numbers_of_paper,
    paper_problems,
)

from pdt.config import load_config
from pdt.generation.events import FinishReason
from pdt.generation.interventions import INTERVENTION_FORMS
from pdt.generation.writer import Writer
from pdt.model.build import from_trunk
from pdt.sources.own_text import own_text

ROOT = generate_docs.ROOT
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=lambda page: page.as_posix()
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """The page without its code fences, in which brackets are no links."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The heading anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@cache
def names_of_tests() -> set[str]:
    """Every test and every file of tests."""
    files = list((ROOT / "tests").rglob("test_*.py"))
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    return {path.stem for path in files} | set(re.findall(r"^def (test_\w+)", text, flags=re.M))


def test_generated_pages_are_what_the_code_says_now() -> None:
    assert generate_docs.drift() == [], "run `make docs`"


def test_generation_gives_the_same_text_twice_and_no_colour() -> None:
    first, second = generate_docs.render_all(), generate_docs.render_all()
    assert first == second
    assert not any("\x1b" in text or str(ROOT) in text for text in first.values())


def test_a_page_without_a_place_for_the_verdict_is_refused() -> None:
    begin, end = generate_docs.MARKS
    page = f"Before.\n\n{begin}\nold\n{end}\n\nAfter.\n"
    once = generate_docs.between_marks(page, "new")
    assert once == page.replace("old", "new") == generate_docs.between_marks(once, "new")
    with pytest.raises(ValueError, match="no place for the verdict"):
        generate_docs.between_marks(f"Before.\n\n{begin}\nold\n", "new")


def test_every_implemented_equation_table_and_figure_has_code_and_a_test() -> None:
    assert paper_map.map_problems(paper_map.build_map(ROOT)) == []


def test_what_is_not_yet_implemented_is_a_passage_of_the_paper() -> None:
    assert set(NOT_YET) <= set(PASSAGES)


def test_every_reading_of_the_paper_has_a_number_of_its_own() -> None:
    page = (ROOT / "docs/gaps.md").read_text(encoding="utf-8")
    numbers = re.findall(r"^### (\d+)\. ", page, flags=re.M)
    assert sorted(numbers, key=int) == [str(n + 1) for n in range(len(numbers))]


def test_a_section_may_be_named_as_not_yet_whole_beside_the_code_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(NOT_YET, "§7.4", "the 14B row")
    rows = {passage: Row({"src/pdt/a.py"}, {("tests/test_a.py", "test_a")}) for passage in PASSAGES}
    assert paper_map.map_problems(rows) == []
    told = paper_map.render_map(rows).partition("### §7.4")[2].partition("###")[0]
    assert "- Not yet: the 14B row.\n- Code\n" in told


def test_a_passage_without_code_or_test_is_reported_and_a_stale_not_yet_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(NOT_YET, "Eq. 2", "an issue to come")
    whole = Row({"src/pdt/a.py"}, {("tests/test_a.py", "test_a")})
    rows = {passage: whole for passage in PASSAGES if passage not in NOT_YET}
    assert paper_map.map_problems(rows) == []
    assert paper_map.map_problems(rows | {"Eq. 5": Row(tests=whole.tests)}) == [
        "Eq. 5 is named by no `Paper:` line in src/pdt"
    ]
    assert paper_map.map_problems(rows | {"Eq. 5": Row(code=whole.code)}) == [
        "Eq. 5 is named by no @pytest.mark.paper in tests"
    ]
    for passage in NOT_YET:
        assert paper_map.map_problems(rows | {passage: whole}) == [
            f"{passage} has code now: remove it from NOT_YET"
        ]


def test_the_map_reads_docstrings_and_markers_and_refuses_a_passage_the_paper_lacks(
    tmp_path: Path,
) -> None:
    code, tests = tmp_path / "src/pdt/a.py", tmp_path / "tests/test_a.py"
    code.parent.mkdir(parents=True)
    tests.parent.mkdir()
    code.write_text('"""A.\n\nPaper: §3.1 to §3.3,\nTable 4 (part).\n\nNot Eq. 1.\n"""\n')
    tests.write_text('import pytest\n\n@pytest.mark.paper("Eq. 5")\ndef test_b(): ...\n')
    rows = paper_map.build_map(tmp_path)
    named = {passage for passage, row in rows.items() if row.code}
    assert named == {"§3.1", "§3.2", "§3.3", "Table 4"}
    assert rows["Eq. 5"].tests == {("tests/test_a.py", "test_b")}
    code.write_text('"""Paper: Eq. 11."""\n')
    with pytest.raises(UnknownPassage, match=r"src/pdt/a\.py names Eq\. 11"):
        paper_map.build_map(tmp_path)


def test_check_exits_one_on_drift(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate_docs.main(["--check"]) == 0
    monkeypatch.setitem(PASSAGES, "Eq. 2", "another name")
    assert generate_docs.main(["--check"]) == 1
    assert "make docs" in capsys.readouterr().err


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's source is not beside the repository")
def test_passages_are_numbered_and_named_as_the_paper_does() -> None:
    tex = PAPER.read_text(encoding="utf-8")
    assert paper_problems(tex) == []
    passages, labels = numbers_of_paper(tex)
    assert len(passages) == len(PASSAGES)
    # A label is either checked here or that of a section, whose title is checked.
    assert {label for label in labels if not label.startswith("sec:")} <= set(LABELS)
    dropped = tex.replace(r"\nonumber", "", 1)
    assert paper_problems(dropped), "an extra equation number goes unnoticed"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_resolve(page: Path) -> None:
    broken = []
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        inside = there.is_relative_to(ROOT) and there.exists()
        if not inside or (anchor and anchor not in anchors(there)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_names_a_place_on_somebodys_machine(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.~])/(?:work|tmp|home|root|Users)\b", text)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8")))
    assert named <= names_of_tests(), named - names_of_tests()


def rows_of(page: str) -> list[list[str]]:
    """The cells of every table row of a page, headings and rules left out."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [row for row in rows if not set("".join(row)) <= set("-: ")]


def test_every_tensor_of_the_shapes_page_is_in_the_file_it_links() -> None:
    checked = 0
    for row in rows_of("shapes.md"):
        names, links = re.findall(r"`(\w+(?:\.\w+)*)`", row[0]), LINK.findall(row[-1])
        if not links:
            continue
        source = "".join((ROOT / "docs" / link).read_text(encoding="utf-8") for link in links)
        for name in names:
            last = name.rsplit(".", 1)[-1]
            assert re.search(rf"\b{last}\b", source), f"{name} is not in {links}"
            checked += 1
    assert checked > 30


def test_every_code_name_of_the_glossary_is_in_the_code() -> None:
    files = [p for p in (ROOT / "src" / "pdt").rglob("*") if p.suffix in (".py", ".yaml")]
    source = "".join(path.read_text(encoding="utf-8") for path in sorted(files))
    known = set(re.findall(r"\w+", source))
    checked = 0
    for row in rows_of("glossary.md"):
        for name in re.findall(r"`([^`]+)`", row[-1]):
            for part in re.findall(r"\w+", name):
                assert part in known, f"{name} ({row[0]}) is not in src/pdt"
            checked += 1
    assert checked > 30


def test_the_manual_lists_every_intervention_with_its_arguments() -> None:
    assert "\n".join(INTERVENTION_FORMS) in (ROOT / "docs/manual.md").read_text(encoding="utf-8")


def test_the_manuals_first_text_of_real_weights_is_one_that_a_reader_would_keep(
    smollm2_gguf: Path,
) -> None:
    """`make demo` ends with it, too: the first that anybody sees of a decoder of his own."""
    manual = (ROOT / "docs/manual.md").read_text(encoding="utf-8")
    form = r'pdt generate (\S+) --request "([^"]+)" --model runs/smollm2 --max-tokens (\d+)'
    found = re.search(form, manual)
    assert found is not None
    assert all(part in (ROOT / "src/pdt/cli/demo.py").read_text() for part in found.groups())
    model = from_trunk(smollm2_gguf, config=load_config("smollm2-135m"))
    source = own_text((ROOT / found[1]).read_text(encoding="utf-8"), Path(found[1]).suffix)
    done = Writer(model).generate(source, found[2], max_tokens=int(found[3]))
    assert done.ledger.troubles == [[None] * 3]
    for section in done.documents[0].sections:
        assert section.reason is FinishReason.EOS and "Baras" in section.text


def test_the_readmes_tree_names_every_package_and_no_other() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = text[text.index("src/pdt/\n") : text.index("tests/   spec/")]
    named = set(re.findall(r"^  (\w+)/ ", tree, flags=re.MULTILINE))
    folders = {p.name for p in (ROOT / "src" / "pdt").iterdir() if p.is_dir()}
    assert named == folders - {"__pycache__"}
