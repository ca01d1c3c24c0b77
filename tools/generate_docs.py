"""Write what prose could get wrong: docs/paper-map.md, docs/cli.md, and the verdict on nano.

    python tools/generate_docs.py            write all of it
    python tools/generate_docs.py --check    exit 1 when a file on disk is not what would be written

The map comes from the `Paper:` lines of docstrings in src/pdt and from `@pytest.mark.paper(...)` in
tests; both are read as syntax trees, nothing of them is run. The command page comes from the typer
application itself. The verdict in README.md and on the model card stands between two marks and
comes from the `summary.json` of `pdt study nano` that ships beside the weights.
"""

import ast
import difflib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAPER = ROOT.parent / "shared" / "paper" / "parallel-decoder-transformer.tex"
SUMMARY = ROOT / "src" / "pdt" / "weights" / "summary.json"
VERDICT_PAGES = ("README.md", "src/pdt/weights/README.md")
MARKS = ("<!-- verdict: made by tools/generate_docs.py -->", "<!-- end of verdict -->")
HELP_WIDTH = 96

PASSAGES = {
    "§1": "Introduction",
    "§2": "Problem Formulation",
    "§2.1": "Three sections, not three guesses",
    "§2.2": "Block-delayed causal factorization",
    "§3": "Parallel Decoder Transformer",
    "§3.1": "Overview and frozen shared trunk",
    "§3.2": "Continuous set planner",
    "§3.3": "Three physical decoder stacks",
    "§3.4": "Persistent hard-routed Plan-KV",
    "§3.5": "Finite delayed dynamic notes",
    "§3.6": "Synchronized parallel generation",
    "§4": "Source-Grounded Long-Form Supervision",
    "§4.1": "Domain and source ingress",
    "§4.2": "Two-stage teacher construction",
    "§4.3": "Tokenized training record",
    "§5": "Learning Objective",
    "§5.1": "Unordered plan matching",
    "§5.2": "Execution and semantic losses",
    "§5.3": "Combined objective",
    "§6": "Curriculum and Optimization",
    "§7": "Evaluation Protocol and Current Status",
    "§7.1": "Questions, interventions, and gates",
    "§7.2": "Fact ownership and long-form quality",
    "§7.3": "Causal communication measurement",
    "§7.4": "Scale control and status",
    "§8": "Related Work",
    "§9": "Discussion and Limitations",
    "§10": "Conclusion",
    "Appendix A": "Canonical Instantiation and Registered Training Configuration",
    "Eq. 1": "factorization",
    "Eq. 2": "planner",
    "Eq. 3": "node projection",
    "Eq. 4": "Plan-KV read",
    "Eq. 5": "product VQ",
    "Eq. 6": "span",
    "Eq. 7": "plan matching",
    "Eq. 8": "presentation order",
    "Eq. 9": "objective",
    "Eq. 10": "dependency delta",
    "Table 1": "source gates",
    "Table 2": "curriculum",
    "Table 3": "evidence gates",
    "Table 4": "canonical dimensions",
    "Fig. 1": "topology",
    "Fig. 2": "layer anatomy",
    "Fig. 3": "block timeline",
}
"""Everything in the paper that has a number, in reading order."""

LABELS = {
    "eq:factorization": "Eq. 1",
    "eq:span": "Eq. 6",
    "eq:objective": "Eq. 9",
    "tab:sourcegates": "Table 1",
    "tab:curriculum": "Table 2",
    "tab:gates": "Table 3",
    "tab:implementation": "Table 4",
    "fig:architecture": "Fig. 1",
    "fig:layer-anatomy": "Fig. 2",
    "fig:block-timeline": "Fig. 3",
    "app:implementation": "Appendix A",
    "sec:notes": "§3.5",
    "sec:inference": "§3.6",
}
"""The paper's own labels, as its references resolve."""

NOT_YET: dict[str, str] = {}
"""Equations, tables and figures without code, and the issue that brings it.

An entry whose passage has code fails the test: remove it then.
"""


@dataclass
class Row:
    """What the project holds for one passage."""

    code: set[str] = field(default_factory=set)
    """Paths under the root."""
    tests: set[tuple[str, str]] = field(default_factory=set)
    """Path and function name."""


class UnknownPassage(ValueError):
    """A docstring or marker names a passage that the paper does not have."""


def build_map(root: Path = ROOT) -> dict[str, Row]:
    """Every passage with the code and the tests that name it."""
    rows = {passage: Row() for passage in PASSAGES}
    for path in sorted((root / "src" / "pdt").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for passage in _code_passages(path):
            _row(rows, passage, name).code.add(name)
    for path in sorted((root / "tests").rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        for function, passage in _test_passages(path):
            _row(rows, passage, name).tests.add((name, function))
    return rows


def passages_in(text: str) -> list[str]:
    """The passages a `Paper:` line names; `§3.1 to §3.5` means each of them."""
    found: list[str] = []
    pattern = (
        r"(§\d+(?:\.\d+)?)(?: to (§\d+(?:\.\d+)?))?|((?:Eq|Fig)\. \d+|Table \d+|Appendix [A-Z])"
    )
    for section, last, other in re.findall(pattern, text):
        if other:
            found.append(other)
        elif last:
            order = [p for p in PASSAGES if p.startswith("§")]
            if section not in order or last not in order:
                raise UnknownPassage(f"{section} to {last}")
            found += order[order.index(section) : order.index(last) + 1]
        else:
            found.append(section)
    return found


def numbers_of_paper(tex: str) -> tuple[dict[str, str], dict[str, str]]:
    """The passages of the LaTeX source as it numbers them (with section titles), and its labels."""
    body = re.sub(r"(?<!\\)%.*", "", tex).split(r"\begin{document}", 1)[1]
    token = re.compile(
        r"\\(?P<section>sub)?section\{(?P<title>[^}]*)\}|(?P<appendix>\\appendix)\b"
        r"|\\begin\{(?P<open>equation|align|figure|table)\}"
        r"|\\end\{(?P<close>equation|align|figure|table)\}"
        r"|(?P<nonumber>\\nonumber)|(?P<row>\\\\)|\\label\{(?P<label>[^}]*)\}"
    )
    passages: dict[str, str] = {}
    labels: dict[str, str] = {}
    count = {"section": 0, "sub": 0, "Eq.": 0, "Fig.": 0, "Table": 0}
    inside, numbered, appendix, here = "", True, False, ""

    def number(kind: str) -> str:
        count[kind] += 1
        passages[f"{kind} {count[kind]}"] = ""
        return f"{kind} {count[kind]}"

    for match in token.finditer(body):
        if match["title"] is not None:
            if match["section"]:
                count["sub"] += 1
            else:
                count["section"], count["sub"] = count["section"] + 1, 0
            top = f"Appendix {chr(64 + count['section'])}" if appendix else f"§{count['section']}"
            here = f"{top}.{count['sub']}" if count["sub"] else top
            passages[here] = match["title"]
        elif match["appendix"]:
            appendix, count["section"] = True, 0
        elif match["open"]:
            inside, numbered = match["open"], True
            if inside in ("figure", "table"):
                here = number("Fig." if inside == "figure" else "Table")
        elif match["nonumber"]:
            numbered = False
        elif match["row"] and inside == "align":
            if numbered:
                number("Eq.")
            numbered = True
        elif match["close"]:
            if match["close"] in ("equation", "align") and numbered:
                number("Eq.")
            inside = ""
        elif match["label"]:
            pending = inside in ("equation", "align")
            labels[match["label"]] = f"Eq. {count['Eq.'] + 1}" if pending else here
    return passages, labels


def paper_problems(tex: str) -> list[str]:
    """Where PASSAGES and LABELS are not what the paper says."""
    passages, labels = numbers_of_paper(tex)
    problems = [f"{p} is not in the paper" for p in PASSAGES if p not in passages]
    problems += [f"{p} is in the paper and not in PASSAGES" for p in passages if p not in PASSAGES]
    problems += [
        f"{p} is called {title!r} in the paper"
        for p, title in passages.items()
        if title and PASSAGES.get(p) not in (None, title)
    ]
    problems += [
        f"{label} is {labels.get(label)} in the paper, {ours} here"
        for label, ours in LABELS.items()
        if labels.get(label) != ours
    ]
    return problems


def map_problems(rows: dict[str, Row], root: Path = ROOT) -> list[str]:
    """Claims of the map that do not hold: an equation, table or figure without code or test."""
    problems = []
    for passage, row in rows.items():
        if passage in NOT_YET:
            if row.code:
                problems.append(f"{passage} has code now: remove it from NOT_YET")
        elif not passage.startswith(("§", "Appendix")):
            if not row.code:
                problems.append(f"{passage} is named by no `Paper:` line in src/pdt")
            if not row.tests:
                problems.append(f"{passage} is named by no @pytest.mark.paper in tests")
    return problems


def render_map(rows: dict[str, Row]) -> str:
    lines = [
        "# Paper map",
        "",
        "Generated by `python tools/generate_docs.py`. Do not edit.",
        "",
        "One row for each numbered passage of the paper. *Code* is every file with a docstring",
        "whose `Paper:` line names the passage. *Tests* are the tests marked with it; the link is",
        "the file, the words are the names of its tests. A passage counts only what names it: a",
        "test of §3.5 is not one of §3.",
    ]
    groups = {
        "Equations": ("Eq.",),
        "Tables": ("Table",),
        "Figures": ("Fig.",),
        "Sections": ("§", "Appendix"),
    }
    for title, prefixes in groups.items():
        lines += ["", f"## {title}", "", "| Passage | Code | Tests |", "|---|---|---|"]
        lines += [
            f"| {_passage_cell(passage)} | {_code_cell(passage, row)} | {_test_cell(row)} |"
            for passage, row in rows.items()
            if passage.startswith(prefixes)
        ]
    return "\n".join(lines) + "\n"


def render_cli() -> str:
    """`--help` of every command, as plain text of a fixed width."""
    from typer.main import get_command

    from pdt.cli import app

    lines = [
        "# Commands",
        "",
        "Generated by `python tools/generate_docs.py` from the application itself. Do not edit.",
        "",
        "stdout is the result, stderr the progress. Exit codes: 0 done, 1 an evidence gate unmet,",
        "2 a wrong call, 3 a broken contract.",
    ]
    for name, text in _helps(get_command(app), "pdt", None):
        lines += ["", f"## {name}", "", "```text", *text.splitlines(), "```"]
    return "\n".join(lines) + "\n"


def render_verdict() -> str:
    """How many gates the study of the weights in the package meets, and the table of them."""
    from pdt.study.summary import StudySummary, gate_lines

    summary = StudySummary.model_validate_json(SUMMARY.read_text(encoding="utf-8"))
    return "\n".join(gate_lines(summary))


def between_marks(page: str, text: str) -> str:
    """The page with `text` in place of what its marks enclose."""
    begin, end = MARKS
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"a page has no place for the verdict: {begin} … {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def render_all(root: Path = ROOT) -> dict[str, str]:
    """Every generated file, by its path under the root."""
    verdict = render_verdict()
    return {
        "docs/paper-map.md": render_map(build_map(root)),
        "docs/cli.md": render_cli(),
        **{
            name: between_marks((root / name).read_text(encoding="utf-8"), verdict)
            for name in VERDICT_PAGES
        },
    }


def drift(root: Path = ROOT) -> list[str]:
    """The differences between what is on disk and what would be written."""
    lines: list[str] = []
    for name, text in render_all(root).items():
        path = root / name
        old = path.read_text(encoding="utf-8") if path.is_file() else ""
        lines += difflib.unified_diff(
            old.splitlines(), text.splitlines(), name, f"{name} (generated)", lineterm=""
        )
    return lines


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: generate_docs.py [--check]\n")
        return 2
    problems = map_problems(build_map())
    if PAPER.is_file():
        problems += paper_problems(PAPER.read_text(encoding="utf-8"))
    if arguments:
        problems += drift()
    else:
        for name, text in render_all().items():
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / name).write_text(text, encoding="utf-8")
    for line in problems:
        sys.stderr.write(f"{line}\n")
    if problems and arguments:
        sys.stderr.write("Run `make docs` and look at the difference.\n")
    return 1 if problems else 0


def _row(rows: dict[str, Row], passage: str, where: str) -> Row:
    if passage not in rows:
        raise UnknownPassage(f"{where} names {passage}, and the paper has no such passage")
    return rows[passage]


def _code_passages(path: Path) -> Iterator[str]:
    """What the docstrings of a module name after `Paper:`, up to the end of their paragraph."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for text in re.findall(
                r"Paper:(.*?)(?:\n\s*\n|\Z)", ast.get_docstring(node) or "", re.S
            ):
                yield from passages_in(" ".join(text.split()))


def _test_passages(path: Path) -> Iterator[tuple[str, str]]:
    """(test, passage) for each paper marker on a function, its class or its module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = [
        passage
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
        for passage in _markers(node.value)
    ]

    def visit(body: list[ast.stmt], outer: list[str]) -> Iterator[tuple[str, str]]:
        for node in body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            own = outer + [p for mark in node.decorator_list for p in _markers(mark)]
            if isinstance(node, ast.ClassDef):
                yield from visit(node.body, own)
            elif node.name.startswith("test_"):
                yield from ((node.name, passage) for passage in own)

    yield from visit(tree.body, module)


def _markers(node: ast.AST) -> Iterator[str]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.paper":
            for argument in call.args:
                yield ast.literal_eval(argument)


def _passage_cell(passage: str) -> str:
    return f"**{passage}** {PASSAGES[passage]}"


def _code_cell(passage: str, row: Row) -> str:
    if passage in NOT_YET:
        return f"not yet: {NOT_YET[passage]}"
    links = [f"[{path.removeprefix('src/pdt/')}](../{path})" for path in sorted(row.code)]
    return "<br>".join(links) or "–"


def _test_cell(row: Row) -> str:
    names: dict[str, list[str]] = {}
    for path, function in sorted(row.tests):
        names.setdefault(path, []).append(function.removeprefix("test_").replace("_", " "))
    cells = [
        f"[{path.removeprefix('tests/')}](../{path}): {'; '.join(functions)}"
        for path, functions in names.items()
    ]
    return "<br>".join(cells) or "–"


def _helps(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    """Help of the command and of all below it, in the order of the application."""
    command.rich_markup_mode = None  # plain text, whatever terminal this runs in
    context = command.make_context(
        name.rsplit(" ", 1)[-1],
        [],
        parent=parent,
        resilient_parsing=True,
        terminal_width=HELP_WIDTH,
        max_content_width=HELP_WIDTH,
    )
    text = "\n".join(line.rstrip() for line in command.get_help(context).strip().splitlines())
    yield name, text
    for child, below in getattr(command, "commands", {}).items():
        yield from _helps(below, f"{name} {child}", context)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
