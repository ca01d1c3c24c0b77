"""One small valid document, as data that a test may edit, and the tokenizer that reads it."""

import copy
import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from pdt.config import PdtConfig, load_config
from pdt.records.compile import Compiler
from pdt.teacher.document import TaughtDocument

BUNDLE = "ab" * 32
PARAGRAPHS = {
    "p1": ((), "The siege of Vell was fought in 1412 between Duke Orsan and the town.", ["c1"]),
    "p2": (("Background",), "The town refused a salt tax of 300 crowns that year.", ["c1", "c2"]),
    "p3": (("Background",), "Café owners in Öster 🧂 paid the tax first.", ["c2"]),
    "p4": (("Siege",), "Orsan camped by the river Ilm with 2,000 men.", ["c2"]),
    "p5": (("Siege",), "The walls held for nine weeks.", ["c3"]),
    "p6": (("Siege", "Treaty"), "A treaty was signed at Brannt in spring.", []),
}
FACTS: dict[str, tuple[str, str, list[str], str, str, str]] = {
    # id: paragraph, quote, citations, what the negative alters, original, replacement
    "f1": ("p1", "was fought in 1412", ["c1"], "date", "1412", "1421"),
    "f2": ("p2", "refused a salt tax of 300 crowns", ["c1"], "quantity", "300", "500"),
    "f3": (
        "p3",
        "Café owners in Öster 🧂 paid the tax first",
        ["c2"],
        "entity",
        "Öster",
        "Norrland",
    ),
    "f4": ("p4", "camped by the river Ilm with 2,000 men", ["c2"], "entity", "Ilm", "Saar"),
    "f5": ("p5", "The walls held for nine weeks", ["c3"], "quantity", "nine", "six"),
    "f6": ("p6", "A treaty was signed at Brannt", [], "relation", "signed", "refused"),
}
SECTIONS = [
    [  # the siege
        "Duke Orsan and the town came to blows, and the siege was fought in 1412 without a pause. "
        "He camped by the river Ilm with 2,000 men and waited for the bread to run out.",
        "The walls held for nine weeks, because the Grey Oath bound every guard to his post.",
    ],
    [  # the aftermath
        "Nobody had won. The fields were bare, the mills stood still, and the people on both sides "
        "of the river looked for a way to stop without having to say that they were tired of it. "
        "The merchants went first, then the priests, and in the end the captains went to talk.",
        "A treaty was signed at Brannt once the nine weeks of siege were over.",
    ],
    [  # the background
        "It began with salt. The town refused a salt tax of 300 crowns, and swore the Grey Oath.",
        "Café owners in Öster 🧂 paid the tax first, and the town never forgave them for it.",
    ],
]
OWNED = {"f1": (0, 0), "f4": (0, 0), "f5": (0, 1), "f6": (1, 1), "f2": (2, 0), "f3": (2, 1)}
OWNER_QUOTES = {
    "f1": "was fought in 1412",
    "f4": "camped by the river Ilm with 2,000 men",
    "f5": "The walls held for nine weeks",
    "f6": "A treaty was signed at Brannt",
    "f2": "refused a salt tax of 300 crowns",
    "f3": "Café owners in Öster 🧂 paid the tax first",
}
Json = dict[str, Any]


def quote(text: str, passage: str) -> Json:
    start = text.index(passage)
    return {"start": start, "end": start + len(passage), "text": passage}


def section_text(lane: int) -> str:
    return "\n\n".join(SECTIONS[lane])


def sample(record_id: str = "vell-1") -> Json:
    """A fresh document as plain JSON: two dependencies, one of them a coined choice of 2 bits."""
    made = {
        "schema_version": "pdt.document/1",
        "record_id": record_id,
        "split": "train",
        "family_key": f"family-{record_id}",
        "category": "siege",
        "article": _article(),
        "inventory": {
            "schema_version": "pdt.facts/1",
            "bundle_id": BUNDLE,
            "facts": [_fact(name) for name in FACTS],
        },
        "answer": _answer(),
        "teacher": {"name": "hand", "version": "1", "settings": {}},
    }
    return copy.deepcopy(made)  # an edit must not reach the tables above


def _article() -> Json:
    sections: list[Json] = []
    for name, (path, text, citations) in PARAGRAPHS.items():
        paragraph = {"id": name, "text": text, "citation_ids": citations}
        if sections and sections[-1]["path"] == list(path):
            sections[-1]["paragraphs"].append(paragraph)
        else:
            sections.append({"path": list(path), "paragraphs": [paragraph]})
    works = [{"id": f"c{n}", "cited_work": f"w{n}", "text": f"Work {n}, p. 5."} for n in (1, 2, 3)]
    return {
        "schema_version": "pdt.article/1",
        "bundle_id": BUNDLE,
        "title": "Siege of Vell",
        "sections": sections,
        "citations": works,
    }


def _fact(name: str) -> Json:
    paragraph, passage, citations, alters, original, replacement = FACTS[name]
    text = PARAGRAPHS[paragraph][1]
    return {
        "id": name,
        "statement": text,
        "paragraph_id": paragraph,
        "quote": quote(text, passage),
        "citation_ids": citations,
        "hard_negative": {
            "statement": text.replace(original, replacement),
            "alters": alters,
            "original": original,
            "replacement": replacement,
        },
    }


def _answer() -> Json:
    plans: list[Json] = []
    for lane, paragraphs in enumerate(SECTIONS):
        nodes = []
        topic = ("siege", "end", "start")[lane]
        for node in range(len(paragraphs)):
            owned = [fact for fact, place in OWNED.items() if place == (lane, node)]
            nodes.append(
                {
                    "objective": f"Explain part {node + 1} of the {topic}",
                    "owned_facts": owned,
                    "reference_facts": ["f5"] if (lane, node) == (1, 1) else [],
                    "dependencies": {(1, 1): ["d1"], (0, 1): ["d2"]}.get((lane, node), []),
                    "target_paragraphs": [node],
                }
            )
        plans.append({"nodes": nodes})
    roles = []
    for fact in FACTS:
        lanes: list[Json] = [{"role": "absent", "quotes": []} for _ in SECTIONS]
        owner = OWNED[fact][0]
        lanes[owner] = {"role": "owner", "quotes": [quote(section_text(owner), OWNER_QUOTES[fact])]}
        if fact == "f5":
            said = quote(section_text(1), "the nine weeks of siege")
            lanes[1] = {"role": "reference", "quotes": [said]}
        roles.append({"fact_id": fact, "lanes": lanes})
    return {
        "schema_version": "pdt.answer/1",
        "request": "Explain how the siege of Vell began, ran and ended.",
        "plans": plans,
        "sections": [{"paragraphs": paragraphs} for paragraphs in SECTIONS],
        "lane_at_position": [2, 0, 1],
        "roles": roles,
        "dependencies": [
            {
                "id": "d1",
                "owner": _end(0, 1, "The walls held for nine weeks"),
                "receiver": _end(1, 1, "the nine weeks of siege"),
                "fact_id": "f5",
            },
            {
                "id": "d2",
                "owner": _end(2, 0, "swore the Grey Oath"),
                "receiver": _end(0, 1, "the Grey Oath bound"),
                "coined": {
                    "choice_id": "oath",
                    "text": "Grey Oath",
                    "entropy_bits": 2,
                    "alternatives": ["Grey Oath", "Red Oath", "Long Oath", "Iron Oath"],
                },
            },
        ],
    }


def _end(lane: int, node: int, passage: str) -> Json:
    return {"lane": lane, "node": node, "quote": quote(section_text(lane), passage)}


def document(record_id: str = "vell-1") -> TaughtDocument:
    return TaughtDocument.model_validate(sample(record_id))


def train_tokenizer(path: Path, *, size: int = 330, eos: str = "</s>") -> Path:
    """A real byte-level BPE, small enough to split words and multi-byte characters."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[eos],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [text for _, text, _ in PARAGRAPHS.values()]
    tokenizer.train_from_iterator(texts + [p for section in SECTIONS for p in section], trainer)
    tokenizer.save(str(path))
    return path


def sample_config(tokenizer: Path, *overrides: str) -> PdtConfig:
    """The tiny preset, with limits that the sample meets."""
    return load_config(
        "tiny",
        overrides=overrides,
        edits={
            "lanes": {"block_tokens": 8},
            "planner": {"max_prompt_tokens": 1024},
            "notes": {"window_blocks": 16},
            "records": {
                "limits": {
                    "source_tokens": {"min": 50, "max": 600},
                    "facts": {"min": 6, "max": 8},
                    "fact_paragraphs": 6,
                    "fact_sections": 3,
                    "plan_nodes": {"min": 2, "max": 4},
                    "section_tokens": {"min": 20, "max": 300},
                    "section_paragraphs": {"min": 2, "max": 4},
                },
                "tokenizer": {"file": str(tokenizer)},
            },
        },
    )


def sample_compiler(tokenizer: Path, *overrides: str) -> Compiler:
    return Compiler.load(sample_config(tokenizer, *overrides))


def write_documents(path: Path, count: int, *, edit: Any = None) -> Path:
    """`count` documents that differ in their ids, one a line."""
    lines = []
    for number in range(count):
        data = sample(f"vell-{number}")
        if edit is not None:
            edit(number, data)
        lines.append(json.dumps(data, ensure_ascii=False))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
