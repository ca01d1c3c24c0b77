"""Have a model write from texts of kinds it never saw, and leave a page and a form for a person.

usage: python tools/try_texts.py --model MODEL --out DIR [--trunk PATH] [--max-tokens N]

For every text of tests/data/texts: DIR/NAME.html, what came out with each sentence linked to its
source, and DIR/NAME.md, the same as text. DIR/marks.yaml holds what was measured and four empty
marks a text: right facts, right lane, readable, nothing invented. A person fills them.
"""

import argparse
from pathlib import Path
from typing import Any

import yaml

from pdt.generation.in_range import signs_out_of_range
from pdt.generation.page import Generated, render_generated
from pdt.generation.settings import GenerationSettings
from pdt.generation.writer import Writer
from pdt.sentences.support import borne_out, source_sentences, support_of
from pdt.sources.own_text import own_text

TEXTS = Path(__file__).parent.parent / "tests" / "data" / "texts"
MARKS = ("right_facts", "right_lane", "readable", "nothing_invented")


def listed() -> list[dict[str, str]]:
    """Every text with its kind and its request."""
    return yaml.safe_load((TEXTS / "texts.yaml").read_text(encoding="utf-8"))


def source_of(entry: dict[str, str]) -> str:
    path = TEXTS / entry["file"]
    return own_text(path.read_text(encoding="utf-8"), path.suffix)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--trunk")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--max-tokens", type=int, default=260)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True)
    writer = Writer.load(asked.model, trunk=asked.trunk)
    form = []
    for entry in listed():
        form.append(_try(writer, entry, asked.out, asked.model, asked.max_tokens))
        print(f"{entry['file']}: {form[-1]['measured']}")
    text = yaml.safe_dump(form, sort_keys=False, allow_unicode=True, width=120)
    (asked.out / "marks.yaml").write_text(text, encoding="utf-8")


def _try(
    writer: Writer, entry: dict[str, str], out: Path, model: str, max_tokens: int
) -> dict[str, Any]:
    source, name = source_of(entry), Path(entry["file"]).stem
    settings = GenerationSettings(max_tokens=max_tokens)
    generation = writer.begin([(source, entry["request"])], settings)
    events = list(generation.events())
    done = events[-1]
    result = done.documents[0]  # type: ignore[union-attr]
    shown = Generated(source, entry["request"], Path(model).name, result, events, done)  # type: ignore[arg-type]
    (out / f"{name}.html").write_text(render_generated(shown), encoding="utf-8")
    theirs = source_sentences(source)
    parts = [f"> {entry['request']}"]
    for section in result.sections:
        told = borne_out(section.text, theirs)
        lines = [s.text if s.source is not None else f"**[not borne out]** {s.text}" for s in told]
        parts += [f"## Lane {section.lane}", " ".join(lines)]
    (out / f"{name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    support = support_of([section.text for section in result.sections], source)
    tokens = len(writer.tokenizer.encode(source).ids)
    return {
        "file": entry["file"],
        "measured": f"{support.borne_out} of {support.sentences} sentences borne out, "
        f"{support.repeated} said before",
        "out_of_range": signs_out_of_range(writer.model.config, source, tokens, result, events),
        "marks": dict.fromkeys(MARKS),
    }


if __name__ == "__main__":
    main()
