"""Another vocabulary for a trained decoder: a word starts as the mean of its old pieces."""

from itertools import pairwise

import torch
from torch import Tensor

from pdt.study.stories import END_OF_TEXT, Stories
from pdt.tokenizer import StudentTokenizer


def re_embed(stories: Stories, student: StudentTokenizer, vocabulary: int) -> Tensor:
    """[vocabulary, width]: a row for each piece of the student; unused rows start at the mean."""
    old = stories.tensors["embed_tokens.weight"]
    index = {piece: number for number, piece in enumerate(stories.pieces)}
    new = old.mean(0).repeat(vocabulary, 1)
    for number in range(student.vocabulary):
        text = student.decode([number])
        pieces = [END_OF_TEXT] if text == student.eos else _merge(text, stories, index)
        if pieces:
            new[number] = old[torch.tensor(pieces)].mean(0)
    return new


def _merge(text: str, stories: Stories, index: dict[bytes, int]) -> list[int]:
    """llama2.c's encoding: characters, then the best-scored neighbours join until none is left."""
    pieces = [index[c.encode()] for c in text if c.encode() in index]
    while True:
        joined = [
            (stories.scores[token], place, token)
            for place, (a, b) in enumerate(pairwise(pieces))
            if (token := index.get(stories.pieces[a] + stories.pieces[b])) is not None
        ]
        if not joined:
            return pieces
        # The highest score; among equals the first, as llama2.c takes them.
        _, place, token = max(joined, key=lambda join: (join[0], -join[1]))
        pieces[place : place + 2] = [token]
