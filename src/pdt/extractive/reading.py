"""The data files as texts: each file has its own form, each text comes out in one.

A text that does not come out clean is left out whole.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pdt.chronicle.dice import digest_of
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
from pdt.provenance import sha256_file


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
        yield from READERS[name](path)


def _text(file: str, title: str, sections: tuple[TextSection, ...]) -> Text:
    name = plain_title(title)
    digest = digest_of(file, title, *(p for s in sections for p in s.paragraphs)).hex()[:16]
    return Text(f"{file}:{digest}", name, family_of(name), sections)


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
                yield _text("hotpotqa", title, (TextSection(None, (paragraph,)),))


def _read_summaries(path: Path) -> Iterator[Text]:
    for title, entry in _json(path).items():
        paragraphs = [
            clean_paragraph(part) for part in entry["extract"].split("\n") if part.strip()
        ]
        if paragraphs and all(paragraphs) and is_plain_title(plain_title(title)):
            whole = tuple(p for p in paragraphs if p)
            yield _text("summaries", title, (TextSection(None, whole),))


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
                yield _text("squad", title, (TextSection(None, tuple(run)),))
            run = [paragraph] if paragraph is not None else []


PARAGRAPHS_OF_A_RUN = 4

READERS: dict[str, Callable[[Path], Iterator[Text]]] = {
    "hotpotqa.json": _read_hotpotqa,
    "summaries_en-us.json": _read_summaries,
    "squad.json": _read_squad,
}
"""By data file. Where two files hold one text, the first that does keeps it."""


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise CorruptFile(f"{path} is not JSON: {error}.\nTake it again.") from error
