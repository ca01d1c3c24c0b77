"""Invented notes in the shape of encyclopedia leads, for the extractive teacher."""

import json
from pathlib import Path
from typing import Any

from pdt.config import PdtConfig, load_config
from pdt.extractive.data_files import DATA_FILES
from pdt.provenance import sha256_file
from pdt.sources.article import Article, ArticleSection, Paragraph

PLACES = (
    "Alder", "Birch", "Cedar", "Dover", "Elm", "Fern", "Gorse", "Hazel", "Ivy", "Juniper", "Kelp",
    "Laurel", "Maple", "Nettle",
)  # fmt: skip
PEOPLE = (
    "Ada", "Bruno", "Clara", "Dario", "Edith", "Felix", "Greta", "Henri", "Irene", "Jonas",
    "Karin", "Leo", "Mona", "Nils",
)  # fmt: skip


def notes(count: int) -> list[tuple[str, list[str]]]:
    """Title and sentences of so many notes about villages."""
    found = []
    for n in range(count):
        name = f"{PLACES[n % 14]} {PLACES[(n * 5 + n // 14 + 3) % 14]} Hill"
        found.append(
            (
                f"{name} {n}" if n >= 14 else name,
                [
                    f"{name} {n} is a village in the county of {PEOPLE[n % 14]}shire near Wexley.",
                    f"It had {200 + 7 * n} residents when it was counted in {1900 + n % 90}.",
                    f"Its church was built by {PEOPLE[(n + 4) % 14]} Marlow after a great flood.",
                ],
            )
        )
    return found


def dossier(count: int, *, headed: bool = True) -> Article:
    sections = tuple(
        ArticleSection(path=(title,), paragraphs=(Paragraph(id=f"p{n}", text=" ".join(sentences)),))
        for n, (title, sentences) in enumerate(notes(count), start=1)
    )
    if not headed:
        loose = tuple(p for section in sections for p in section.paragraphs)
        sections = (ArticleSection(path=(), paragraphs=loose),)
    return Article(bundle_id="0" * 64, title="Notes", sections=sections)


def prose_config(*overrides: str) -> PdtConfig:
    """The digest preset with the tokenizer of the package, whose tokens are shorter."""
    return load_config(
        "digest",
        overrides=[
            "records.tokenizer.name=nano",
            "records.tokenizer.eos=</s>",
            "records.limits.section_tokens.max=2000",
            "records.limits.source_tokens.max=4000",
            "planner.max_prompt_tokens=6000",
            *overrides,
        ],
    )


def write_data_file(directory: Path, monkeypatch: Any, count: int = 60) -> None:
    """A file in HotpotQA's form, and its digest in the list of data files."""
    directory.mkdir()
    path = directory / "hotpotqa.json"
    context = [[title, sentences] for title, sentences in notes(count)]
    path.write_text(json.dumps([{"context": context}]), encoding="utf-8")
    known = DATA_FILES[path.name].model_copy(update={"sha256": sha256_file(path)})
    monkeypatch.setitem(DATA_FILES, path.name, known)
