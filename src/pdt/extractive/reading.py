"""The data files as texts: each file has its own form, each text comes out in one.

A text that does not come out clean is left out whole.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pdt.chronicle.dice import digest_of
from pdt.contract import parse_contract
from pdt.errors import CorruptFile, UsageError
from pdt.extractive.data_files import DATA_FILES
from pdt.extractive.texts import (
    Text,
    TextSection,
    clean_paragraph,
    family_of,
    is_plain_title,
    plain_title,
    same_sentences,
)
from pdt.extractive.wikitext import read_pages, units_of
from pdt.provenance import atomic_path, sha256_file


def read_texts(directory: Path) -> Iterator[Text]:
    """Every clean text of the data files that lie in `directory`, in the order of `READERS`."""
    found = [name for name in READERS if (directory / name).is_file()]
    if not found:
        raise UsageError(
            f"{directory} holds none of {', '.join(READERS)}.\nRun `pdt corpus take` first."
        )
    for name in found:
        path = directory / name
        if sha256_file(path) != DATA_FILES[name].sha256:
            raise CorruptFile(
                f"{path} is not the file that its digest names.\n"
                "Remove it and run `pdt corpus take` again."
            )
        yield from _kept(path, READERS[name])


def _kept(path: Path, reader: Callable[[Path], Iterator[Text]]) -> Iterator[Text]:
    """The clean texts of a file, read from it once and then from beside it."""
    beside = path.parent / "clean" / f"{path.name}.{CLEANING}.jsonl"
    if not beside.is_file():
        beside.parent.mkdir(exist_ok=True)
        with atomic_path(beside) as partial, partial.open("w", encoding="utf-8") as file:
            file.writelines(text.model_dump_json() + "\n" for text in reader(path))
    with beside.open(encoding="utf-8") as file:
        for line in file:
            yield parse_contract(
                Text, line, where=str(beside), remedy="Remove it; it is made again."
            )


CLEANING = "2"
"""The version of what follows: texts that were cleaned by another one are cleaned again."""


def _text(file: str, title: str, sections: tuple[TextSection, ...]) -> Text:
    name = plain_title(title)
    digest = digest_of(file, title, *(p for s in sections for p in s.paragraphs)).hex()[:16]
    return Text(id=f"{file}:{digest}", title=name, family=family_of(name), sections=sections)


def _read_hotpotqa(path: Path) -> Iterator[Text]:
    """Introductory paragraphs; one that stands in several questions is one text."""
    seen: set[str] = set()
    for question in _json(path):
        for title, sentences in question["context"]:
            if title in seen:
                continue
            seen.add(title)
            paragraph = clean_paragraph(" ".join(sentences))
            if (
                paragraph
                and is_plain_title(plain_title(title))
                and len(sentences) >= 2
                and same_sentences(paragraph, [clean_paragraph(s) or "" for s in sentences])
            ):
                yield _text(
                    "hotpotqa", title, (TextSection(heading=None, paragraphs=(paragraph,)),)
                )


def _read_summaries(path: Path) -> Iterator[Text]:
    for title, entry in _json(path).items():
        paragraphs = [
            clean_paragraph(part) for part in entry["extract"].split("\n") if part.strip()
        ]
        if paragraphs and all(paragraphs) and is_plain_title(plain_title(title)):
            whole = tuple(p for p in paragraphs if p)
            yield _text("summaries", title, (TextSection(heading=None, paragraphs=whole),))


def _read_squad(path: Path) -> Iterator[Text]:
    """Runs of paragraphs of one article that come out clean; an article gives several texts."""
    for article in _json(path)["data"]:
        title = article["title"].replace("_", " ")
        if not is_plain_title(plain_title(title)):
            continue
        run: list[str] = []
        for paragraph in [clean_paragraph(p["context"]) for p in article["paragraphs"]] + [None]:
            if paragraph is not None and len(run) < PARAGRAPHS_OF_A_RUN:
                run.append(paragraph)
                continue
            if len(run) > 1:
                yield _text("squad", title, (TextSection(heading=None, paragraphs=tuple(run)),))
            run = [paragraph] if paragraph is not None else []


def _read_enwik8(path: Path) -> Iterator[Text]:
    """Short articles whole, and sections of the longer ones with their own headings."""
    for title, wikitext in read_pages(path):
        if is_plain_title(plain_title(title)):
            for sections in units_of(wikitext):
                yield _text("enwik8", title, sections)


PARAGRAPHS_OF_A_RUN = 4

READERS: dict[str, Callable[[Path], Iterator[Text]]] = {
    "hotpotqa.json": _read_hotpotqa,
    "summaries_en-us.json": _read_summaries,
    "squad.json": _read_squad,
    "enwik8.gz": _read_enwik8,
}
"""By data file. Where two files hold one text, the first that does keeps it."""


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise CorruptFile(f"{path} is not JSON: {error}.\nTake it again.") from error
