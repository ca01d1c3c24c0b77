"""A person's own text in the form that models read: `# Title`, `## Heading`, paragraphs.

Markdown keeps its headings and the words of links and emphasis; a list item is a paragraph. Code,
tables, images, comments and raw HTML are left out of Markdown; a page of HTML gives its headings,
paragraphs and list items and nothing else. Plain text keeps its paragraphs.
"""

import re
from html.parser import HTMLParser

_BLOCKS = {"p", "li", "blockquote", "dd", "dt", "figcaption", "pre", "td", "th"}
_HEADINGS = {f"h{n}": "#" * n for n in range(1, 7)}
_SKIPPED = {
    "aside", "button", "canvas", "figure", "footer", "form", "head", "iframe", "math", "nav",
    "noscript", "script", "select", "style", "svg", "table", "template",
}  # fmt: skip


def own_text(text: str, suffix: str) -> str:
    """The text of a file with this suffix; without one it is Markdown, or looks like HTML."""
    if suffix in (".html", ".htm") or (
        not suffix and re.match(r"\s*<(!doctype|html)\b", text, re.I)
    ):
        return html_text(text)
    if suffix in (".md", ".markdown", ""):
        return markdown_text(text)
    return "\n\n".join(_paragraphs(text))


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def markdown_text(text: str) -> str:
    """Headings and paragraphs of a Markdown text."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)  # front matter
    text = re.sub(r"^(```|~~~).*?^\1[^\n]*$", "", text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^(.+)\n(=|-){3,}[ \t]*$", _underlined, text, flags=re.M)
    lines: list[str] = []
    for line in text.splitlines():
        plain = line.strip()
        if re.match(r"^(\||[-*_]{3,}$|\[[^\]]+\]: )", plain):
            plain = ""  # a table's row, a rule, a link's target
        heading = re.match(r"^(#{1,6})\s+(.*?)\s*#*$", plain)
        if heading:
            lines += ["", f"{heading[1]} {_words(heading[2])}", ""]
        elif item := re.match(r"^(?:[-*+]|\d+[.)])\s+(.*)$", plain):
            lines += ["", item[1]]
        else:
            lines.append(plain.removeprefix("> ").removeprefix(">"))
    return "\n\n".join(filter(None, (_words(part) for part in _paragraphs("\n".join(lines)))))


def _underlined(found: re.Match[str]) -> str:
    return f"{'#' if found[2] == '=' else '##'} {found[1]}"


def _words(text: str) -> str:
    """A line without the marks of Markdown."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
    text = re.sub(r"<(https?://[^>]+)>", r"\1", text)
    text = re.sub(r"</?[a-zA-Z][^>]*>", "", text)
    text = re.sub(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1", r"\2", text)
    text = re.sub(r"(?<!\w)([*_])(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
    text = re.sub(r"`([^`]*)`", r"\1", text)
    return " ".join(text.split())


def html_text(text: str) -> str:
    """Headings, paragraphs and list items of a page."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader.end_block()
    return "\n\n".join(reader.blocks)


class _Reader(HTMLParser):
    """Collects the text of blocks; what stands in a skipped element is not read."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[str] = []
        self._text: list[str] = []
        self._mark = ""
        self._skipping = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED:
            self._skipping += 1
        elif tag in _BLOCKS or tag in _HEADINGS or tag in ("div", "section", "article", "main"):
            self.end_block()
            self._mark = _HEADINGS.get(tag, "")
        elif tag == "br":
            self._text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._skipping = max(0, self._skipping - 1)
        elif tag in _BLOCKS or tag in _HEADINGS:
            self.end_block()

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self._text.append(data)

    def end_block(self) -> None:
        words = " ".join("".join(self._text).split())
        if words:
            self.blocks.append(f"{self._mark} {words}".strip())
        self._text, self._mark = [], ""
