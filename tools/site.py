"""The hooks of the documentation site (mkdocs.yml): pages from elsewhere, and links between all.

README, changelog, contributing guide and model card become pages; every module of `pdt` gets a page
of its docstrings. A link to a module leads to that page; a link to any other file of the repository
is only its text, for the site does not carry it.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "src/pdt/weights/README.md": "card.md",
}
"""Files of the repository that are pages of the site."""
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```)", flags=re.M | re.S)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Behind the navigation of mkdocs.yml: pages it does not name, the reference, the decisions."""
    packages: dict[str, list[str]] = {}
    for page in reference_pages():
        packages.setdefault(page.split("/")[2] if page.count("/") > 2 else "pdt", []).append(page)
    assert config.nav is not None
    named = set(re.findall(r"[\w-]+\.md", str(config.nav)))
    unnamed = sorted(p.name for p in (ROOT / "docs").glob("*.md") if p.name not in named)
    if unnamed:  # a page that nobody has given a place is still found
        config.nav.append({"More": list(unnamed)})
    config.nav.append({"Reference": [{name: pages} for name, pages in packages.items()]})
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    config.nav.append({"Decisions": [f"decisions/{path.name}" for path in decisions]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in OUTSIDE.items():
        content = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=content))
    for page, module in reference_pages().items():
        files.append(File.generated(config, page, content=f"# {module}\n\n::: {module}\n"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the repository has them become links as the site has them."""
    at = page.file.src_uri
    origin = {there: here for here, there in OUTSIDE.items()}.get(at, f"docs/{at}")

    def moved(link: re.Match[str]) -> str:
        text, target = link[1], link[2]
        path, _, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return link[0]
        place = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        there = page_of(place)
        if there is None:
            return text
        found = posixpath.relpath(there, posixpath.dirname(at) or ".")
        return f"[{text}]({found}{'#' if anchor else ''}{anchor})"

    parts = FENCE.split(markdown)
    return "".join(part if n % 2 else LINK.sub(moved, part) for n, part in enumerate(parts))


def page_of(place: str) -> str | None:
    """The page of the site that a file of the repository became; None where there is none."""
    if place in OUTSIDE:
        return OUTSIDE[place]
    if place.startswith("docs/") and (ROOT / place).is_file():
        return place.removeprefix("docs/")
    if place.startswith("src/pdt/"):
        inside = place.removeprefix("src/").removesuffix("/__init__.py").removesuffix(".py")
        page = f"reference/{inside}.md"
        return page if page in reference_pages() else None
    return None


def reference_pages() -> dict[str, str]:
    """Page and module of every module; a script in a folder that is no package has none."""
    pages = {}
    for path in sorted((ROOT / "src" / "pdt").rglob("*.py")):
        inside = path.relative_to(ROOT / "src").with_suffix("").as_posix()
        inside = inside.removesuffix("/__init__")
        if not inside.endswith("__main__") and (path.parent / "__init__.py").is_file():
            pages[f"reference/{inside}.md"] = inside.replace("/", ".")
    return pages
