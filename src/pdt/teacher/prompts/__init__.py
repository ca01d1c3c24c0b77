"""The prompts of both passes, as versioned files, and the messages that are made of them.

A prompt's file is part of the key of every call made with it: a changed prompt never takes an old
answer. A new version is a new file; the old one stays, for those who replay.

Paper: §4.2.
"""

import math
from collections.abc import Sequence
from importlib import resources

from pdt.config import PdtConfig
from pdt.sources.article import Article
from pdt.teacher.checks import CheckFailure
from pdt.teacher.checks.rules import ALL_RULES
from pdt.teacher.facts import FactInventory
from pdt.terms import TeacherPass

VERSIONS = {TeacherPass.EXTRACT_FACTS: "v1", TeacherPass.COMPOSE_ANSWER: "v1"}
REPAIR = "repair.v1"

TOKENS_PER_WORD = (1.15, 1.45)
"""Fewest and most Qwen tokens that a word takes: 1.15 in the curated sections, 1.42 in the median
paragraph of real articles, where names and numbers stand closer."""
MOST_REPORTED = 60
"""Broken rules in one repair message; more would not be read."""


def prompt_name(teacher_pass: TeacherPass) -> str:
    return f"{teacher_pass}.{VERSIONS[teacher_pass]}"


def teacher_prompt(name: str) -> str:
    """A prompt file, as it is."""
    return (resources.files("pdt.teacher.prompts") / f"{name}.md").read_text(encoding="utf-8")


def instructions(teacher_pass: TeacherPass, config: PdtConfig) -> str:
    """The prompt with the contract's own numbers in their places."""
    return teacher_prompt(prompt_name(teacher_pass)).format(**_numbers(config))


def _numbers(config: PdtConfig) -> dict[str, int]:
    limits, block = config.records.limits, config.lanes.block_tokens
    fewest, most = TOKENS_PER_WORD
    return {
        "facts_min": limits.facts.min,
        "facts_max": limits.facts.max,
        "fact_paragraphs": limits.fact_paragraphs,
        "fact_sections": limits.fact_sections,
        "lanes": config.lanes.count,
        "lanes_last": config.lanes.count - 1,
        "nodes_min": limits.plan_nodes.min,
        "nodes_max": limits.plan_nodes.max,
        "paragraphs_min": limits.section_paragraphs.min,
        "paragraphs_max": limits.section_paragraphs.max,
        "tokens_min": limits.section_tokens.min,
        "tokens_max": limits.section_tokens.max,
        "words_min": math.ceil(limits.section_tokens.min / fewest),
        "words_max": math.floor(limits.section_tokens.max / most),
        "block_tokens": block,
        # The owner's block has to end first: two blocks apart is far enough wherever they begin.
        "delay_words": math.ceil((config.records.note_delay_blocks + 1) * block / fewest),
        "window_words": math.floor((config.notes.window_blocks - 1) * block / most),
    }


def article_message(article: Article) -> str:
    """The article as a teacher reads it: ids and citations, which the student never sees."""
    parts = [f"# {article.title}"]
    for section in article.sections:
        if section.path:
            parts.append(f"{'#' * (len(section.path) + 1)} {' / '.join(section.path)}")
        for paragraph in section.paragraphs:
            cited = ", ".join(paragraph.citation_ids) or "none"
            parts.append(f"[{paragraph.id}] (citations: {cited})\n{paragraph.text}")
    return "\n\n".join(["<article>", *parts, "</article>"])


def facts_message(inventory: FactInventory) -> str:
    """The validated inventory, with what must stay absent."""
    lines = [
        f"[{fact.id}] {fact.statement}\n  quote from {fact.paragraph_id}: {fact.quote.text}\n"
        f"  false neighbour: {fact.hard_negative.statement}"
        for fact in inventory.facts
    ]
    return "\n\n".join(["<facts>", *lines, "</facts>"])


def repair_message(failures: Sequence[CheckFailure]) -> str:
    """Every broken rule in its own words, so that all can be repaired at once."""
    lines = [f"- {failure}. Rule: {ALL_RULES[failure.rule].sentence}" for failure in failures]
    if len(lines) > MOST_REPORTED:
        lines = [*lines[:MOST_REPORTED], f"- and {len(lines) - MOST_REPORTED} more of the same."]
    return teacher_prompt(REPAIR).format(broken="\n".join(lines))
