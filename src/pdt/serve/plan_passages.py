"""What a plan node points at: sentences of the source, where nodes are states of the trunk.

Such a planner was taught to give a node the states of the passages that it owns. So each sentence
of the source is put into the planner's space as if a node owned it alone, and the nearest are told.

Paper: §3.2, §4.3.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.generation.loop import Generation
from pdt.model.passages import passages_in_plan_space
from pdt.records.align import monotone, tokens_between
from pdt.sentences.support import source_sentences
from pdt.tokenizer import StudentTokenizer, prompt_text

NEAR = 0.3
"""Cosine below which a sentence is as near as any."""
OF_BEST = 0.7
"""A node that owns several passages lies between them: how near the others must be."""
MOST = 3
Node = dict[str, object]


def nearest_sentences(
    generation: Generation, tokenizer: StudentTokenizer, source: str, request: str
) -> list[list[Node]]:
    """By lane, each node that exists with the sentences nearest to it and their cosines."""
    plans = generation.plans_in_force
    assert plans is not None
    texts, passages_FP = _passages(generation, tokenizer, source, request)
    cosines_KNF = F.normalize(plans.nodes_BKNP[0].float(), dim=-1) @ passages_FP.T
    return [
        [
            {"node": n, "sentences": _near(texts, cosines_KNF[lane, n])}
            for n, exists in enumerate(valid_N)
            if exists
        ]
        for lane, valid_N in enumerate(plans.valid_BKN[0].tolist())
    ]


def _near(texts: list[str], cosines_F: Tensor) -> list[dict[str, object]]:
    if not texts:
        return []
    least = max(NEAR, OF_BEST * float(cosines_F.max()))
    best = [i for i in cosines_F.argsort(descending=True)[:MOST].tolist() if cosines_F[i] >= least]
    return [{"text": texts[i], "cosine": round(float(cosines_F[i]), 2)} for i in best]


@torch.inference_mode()
def _passages(
    generation: Generation, tokenizer: StudentTokenizer, source: str, request: str
) -> tuple[list[str], Tensor]:
    """The source's sentences that stand in the prompt, and a unit vector for each."""
    model, (tokens,) = generation.model, generation.prompts
    layout = model.config.records.prompt_format
    text = prompt_text(source.rstrip(), request.strip(), layout)
    starts, ends = monotone(tokenizer.encode(text).spans)
    texts, spans, at = [], [], layout.index("{source}")
    for sentence in source_sentences(source):
        begin = text.find(sentence.text, at)
        if begin < 0:
            continue
        at = begin + len(sentence.text)
        span = tokens_between(starts, ends, begin, at)
        if span:
            texts.append(sentence.text)
            spans.append((span.start, span.stop))
    if not texts:
        return [], torch.zeros(0, model.config.planner.width)
    device = model.device
    prompt = model.read_prompt(
        torch.tensor([tokens], device=device), torch.tensor([len(tokens)], device=device)
    )
    bounds_F2 = torch.tensor(spans, device=device)
    passages_FP = passages_in_plan_space(
        model.config, model.trunk, prompt, bounds_F2[None, :, 0], bounds_F2[None, :, 1]
    )[0]
    return texts, F.normalize(passages_FP.float(), dim=-1)
