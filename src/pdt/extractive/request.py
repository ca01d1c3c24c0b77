"""Requests as people write them: hundreds of wordings, and silence about how to divide."""

import random
from collections.abc import Sequence

from pdt.extractive.divide import Division

OPENINGS = ("", "", "", "Please ", "Could you ", "Can you ", "I need you to ", "Would you ")
VERBS = (
    "brief me on", "sum up", "summarise", "summarize", "write up", "go through", "condense",
    "outline", "report on", "walk me through", "tell me about", "digest", "give an account of",
    "write about", "explain", "describe", "cover", "put together a brief on",
    "write a short report on",
)  # fmt: skip
OBJECTS = (
    "this", "these notes", "the text above", "what is written here", "this material", "all of this",
    "the notes above", "the above", "what stands here", "this page", "the pages above", "it",
)  # fmt: skip
TAILS = (
    "", "", "", "", " in three sections", " in three parts", " in plain prose",
    " for a busy reader", " for someone who has no time", " in a few paragraphs",
    " for my colleagues", " without leaving out the facts", " as three short sections",
    " for a newcomer",
)  # fmt: skip
SILENT = (
    "Brief me on this.", "What does this say?", "What is in here?", "Give me the essentials.",
    "Summary, please.", "Three sections, please.", "What should I know?", "Main points?",
    "Write it up.", "A digest of this.", "The facts, in three sections.",
    "What do the notes say?", "Tell me what is here.", "In short?",
    "Make a briefing out of this.", "I have no time to read this; brief me.", "Just the facts.",
)  # fmt: skip
PARTS = (
    "First {a}, then {b}, and last {c}.",
    "One section on {a}, one on {b}, one on {c}.",
    "Start with {a}, go on to {b}, end with {c}.",
    "Three sections: {a}; {b}; {c}.",
    "I want {a} first, {b} second and {c} third.",
    "Begin with {a}. Then {b}. Then {c}.",
    "Take {a} together, then {b}, then {c}.",
    "Section one: {a}. Section two: {b}. Section three: {c}.",
    "Write about {a}, after that about {b}, and at the end about {c}.",
    "Tell me about {a}; then about {b}; then about {c}.",
)
IN_ORDER = (
    "Go through it from beginning to end.",
    "Keep the order of the text.",
    "In the order in which it stands, in three parts.",
    "Top to bottom, in three sections.",
    "Follow the text from the first line to the last.",
)
ASKED = {
    "what": (
        "what each of them is", "who or what they are", "what everything is", "the basics",
        "what we are talking about",
    ),
    "when": (
        "what happened when", "the dates", "everything with a date", "when things happened",
        "how it went over the years",
    ),
    "numbers": (
        "the numbers", "the figures", "everything that is counted", "how much and how many",
        "the quantities",
    ),
    "rest": (
        "the rest", "everything else", "what is left", "all other things", "whatever remains",
    ),
}  # fmt: skip


def draw_request(stream: random.Random, division: Division) -> str:
    """A request that says as much of the division as its name promises."""
    general = _general(stream)
    if division.name == "note":
        named = stream.choice(PARTS).format(**_letters(division.parts))
        return stream.choice((named, f"{general} {named}"))
    if division.name == "words":
        asked = [stream.choice(ASKED[part]) for part in division.parts]
        named = stream.choice(PARTS).format(**_letters(asked))
        return stream.choice((named, f"{general} {named}"))
    if division.name == "position" and stream.random() < 0.5:
        return stream.choice((stream.choice(IN_ORDER), f"{general} {stream.choice(IN_ORDER)}"))
    return general


def _general(stream: random.Random) -> str:
    if stream.random() < 0.3:
        return stream.choice(SILENT)
    opening = stream.choice(OPENINGS)
    text = f"{opening}{stream.choice(VERBS)} {stream.choice(OBJECTS)}{stream.choice(TAILS)}"
    mark = "?" if opening.startswith(("Could", "Can", "Would")) else "."
    return text[0].upper() + text[1:] + mark


def _letters(parts: Sequence[str]) -> dict[str, str]:
    return dict(zip("abc", parts, strict=True))
