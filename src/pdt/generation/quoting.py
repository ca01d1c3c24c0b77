"""Writing that may only quote: whole sentences of the source, each at most once in a lane.

What a lane may write next is a place in a tree of the source's sentences, as they stand and without
their parentheses. The model chooses among the branches: which sentence, in which order, and when to
end. It sees nothing of siblings, and everything follows from the prompt, so a trace replays.

Not in the paper, whose lanes write freely.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from pdt.config import PdtConfig
from pdt.errors import UsageError
from pdt.sentences.support import source_sentences
from pdt.sentences.words import without_parentheses
from pdt.tokenizer import StudentTokenizer

FEWEST_WORDS = 4
"""What is shorter is a heading, a label or a sign-off."""


@dataclass
class _Branch:
    """The sentences that go on alike so far."""

    sentences: set[int] = field(default_factory=set)
    onward: dict[int, "_Branch"] = field(default_factory=dict)
    ends: set[int] = field(default_factory=set)
    """Of these, the ones that are complete here."""


class Sentences:
    """The source's sentences as a tree of tokens, shared by the lanes of a document."""

    def __init__(
        self, prompt: Sequence[int], config: PdtConfig, tokenizer: StudentTokenizer
    ) -> None:
        self.root = _Branch()
        self.between = _between(tokenizer)
        told = source_sentences(_source_of(prompt, config, tokenizer))
        kept = [one.text for one in told if len(one.text.split()) >= FEWEST_WORDS]
        if not kept:
            raise UsageError(
                "The source has no sentence to quote.\n"
                "Give it prose, or let the lanes write freely: --set quote=false."
            )
        for number, text in enumerate(kept):
            for form in {text, without_parentheses(text)}:
                self._add(number, tokenizer.encode(form).ids)

    def _add(self, number: int, tokens: Sequence[int]) -> None:
        branch = self.root
        for token in tokens:
            branch.sentences.add(number)
            branch = branch.onward.setdefault(token, _Branch())
        branch.sentences.add(number)
        branch.ends.add(number)


class Quoting:
    """Where one lane stands in the tree, and what it has told."""

    def __init__(self, sentences: Sentences, eos: Sequence[int]) -> None:
        self._root, self._between = sentences.root, sentences.between
        self._eos = list(eos)
        self._at = sentences.root
        self._told: set[int] = set()
        self._due: list[int] = []
        """What is left of the break between two sentences."""

    def mask(self, logits_V: Tensor) -> Tensor:
        """The logits of what may come next; all others are impossible."""
        allowed = self._allowed()
        masked = torch.full_like(logits_V, -torch.inf)
        masked[allowed] = logits_V[allowed]
        return masked

    def push(self, token: int) -> None:
        """The token that the lane has written; a forced one that is no quote moves nothing."""
        if self._due:
            self._due = self._due[1:]
        elif token in self._at.onward:
            self._at = self._at.onward[token]
        elif self._at.ends and token == self._between[0]:
            self._told |= self._at.ends
            self._at, self._due = self._root, list(self._between[1:])

    def _allowed(self) -> list[int]:
        if self._due:
            return self._due[:1]
        onward = [t for t, branch in self._at.onward.items() if branch.sentences - self._told]
        if self._at.ends:
            told = self._told | self._at.ends
            onward += [*self._eos, *(self._between[:1] if self._root.sentences - told else ())]
        return onward


def _source_of(prompt: Sequence[int], config: PdtConfig, tokenizer: StudentTokenizer) -> str:
    """The source in a prompt: what stands in its place of the format. The request is one piece."""
    before, _, rest = config.records.prompt_format.partition("{source}")
    between, _, after = rest.partition("{request}")
    text = tokenizer.decode(prompt).removeprefix(before).removesuffix(after)
    return text.rpartition(between)[0]


def _between(tokenizer: StudentTokenizer) -> list[int]:
    """The tokens of the break between two sentences, each a paragraph."""
    one = tokenizer.encode("A.").ids
    return list(tokenizer.encode("A.\n\nA.").ids[len(one) : -len(one)])
