"""Sources and requests to begin with, of the kind that the model at hand was trained on."""

from functools import lru_cache
from typing import Any

import yaml

from pdt.generation.writer import Writer
from pdt.study.recipe import load_recipe
from pdt.terms import Split, TeacherKind
from pdt.web.pages import folder

DRAWS = 1000
"""Examples are drawn from so many documents of Chronicle's test split."""


def draw(writer: Writer, number: int) -> dict[str, Any]:
    """An invented history for a model of Chronicle, a short real text for any other."""
    config = writer.model.config
    if config.teacher.kind is TeacherKind.CHRONICLE:
        return _history(writer, number)
    texts = _texts()
    settings = {"temperature": 0, "seed": 0}
    if config.teacher.kind is TeacherKind.EXTRACTIVE:
        settings["max_tokens"] = config.records.limits.section_tokens.max + 40
    return {**texts[number % len(texts)], "settings": settings}


def _history(writer: Writer, number: int) -> dict[str, Any]:
    from pdt.chronicle import Chronicle
    from pdt.chronicle.dials import turn_dials
    from pdt.chronicle.meter import Meter

    config = writer.model.config
    recipe = config.records.tokenizer.name  # each tokenizer of Chronicle's is its recipe's own
    corpora = load_recipe(recipe).corpora
    test = corpora.get("test-told") or corpora["test"]
    chronicle = Chronicle(
        test.seed, Split.TEST, turn_dials(recipe, test.dials), Meter(writer.tokenizer)
    )
    taught = chronicle.document(number).taught
    longest = config.records.limits.section_tokens.max
    return {
        "source": taught.article.text,
        "request": taught.answer.request,
        "settings": {"max_tokens": longest, "temperature": 0.3, "seed": number},
    }


@lru_cache(maxsize=1)
def _texts() -> list[dict[str, str]]:
    file = folder("pdt.serve", "examples") / "examples.yaml"
    texts: list[dict[str, str]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return texts
