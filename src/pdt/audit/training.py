"""The training round: examples with known answers, judged before anything real is shown."""

from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, model_validator

from pdt.audit.answers import POINTS, Answer
from pdt.audit.queue import Paragraphs
from pdt.contract import Contract, Index, Line, parse_contract
from pdt.errors import UsageError
from pdt.evaluation.measures.longform import paragraphs_of, sentences_of
from pdt.provenance import read_utf8, sha256_json

FILE = "training.yaml"
PASS_SHARE = 0.8


class Example(Contract):
    """A claim and a text whose answer is known."""

    paragraphs: Paragraphs
    words: Line
    answer: Answer
    sentence: Index | None
    why: Line

    @model_validator(mode="after")
    def _points_at_a_sentence(self) -> "Example":
        count = sum(map(len, self.paragraphs))
        if (self.answer in POINTS) != (self.sentence is not None):
            raise ValueError(f"the answer {self.answer} and its sentence do not fit: {self.words}")
        if self.sentence is not None and self.sentence >= count:
            raise ValueError(f"there is no sentence {self.sentence + 1}: {self.words}")
        return self


class Training(Contract):
    """All examples of a round."""

    examples: Annotated[tuple[Example, ...], Field(min_length=1)]

    @property
    def digest(self) -> str:
        return sha256_json(self.model_dump(mode="json"))

    @property
    def pass_mark(self) -> int:
        return round(len(self.examples) * PASS_SHARE)


def read_training(file: Path | None = None) -> Training:
    """The packaged examples, or those of a file of the same form."""
    if file is not None and not file.is_file():
        raise UsageError(f"{file} is not a file.\nGive examples like those of {FILE}.")
    if file is None:
        text = (resources.files("pdt.audit") / FILE).read_text(encoding="utf-8")
    else:
        text = read_utf8(file, remedy="Give a YAML file like the packaged training.yaml.")
    where = str(file or FILE)
    try:
        texts = yaml.safe_load(text)
        examples = [_example(one, claim) for one in texts for claim in one["claims"]]
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{where} is not a list of texts with claims: {error!r}.\ndocs/audit.md shows the form."
        ) from error
    return parse_contract(
        Training, {"examples": examples}, where=where, remedy="docs/audit.md shows the form."
    )


def _example(one: dict[str, Any], claim: dict[str, Any]) -> dict[str, Any]:
    sentence = claim.get("sentence")
    return {
        "paragraphs": [sentences_of(p) for p in paragraphs_of(one["text"])],
        "words": claim["claim"],
        "answer": claim["answer"],
        "sentence": None if sentence is None else sentence - 1,
        "why": claim["why"],
    }
