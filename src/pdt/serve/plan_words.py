"""What a plan node is near to: words of the source and the request, where the plan is latent.

A trained planner's nodes lie near the embeddings of the teacher's outline. So the words whose own
embeddings lie nearest say what a node is about. They are a reading, and no part of the plan.

Paper: §3.2, §4.3.
"""

import re
from functools import lru_cache

import numpy as np

from pdt.config import PdtConfig
from pdt.generation.loop import Generation
from pdt.records.embed import FUNCTION_WORDS, Encoder, Projection, load_encoder

NEAR = 0.3
"""Cosine below which a word is as near as any."""
WORDS = 3
Node = dict[str, object]


@lru_cache(maxsize=1)
def _projected(config_json: str) -> tuple[Encoder, Projection]:
    config = PdtConfig.model_validate_json(config_json)
    encoder = load_encoder(config)
    projection = Projection(
        config.records.projection_seed,
        planner_width=config.planner.width,
        encoder_width=encoder.width,
    )
    return encoder, projection


def nearest_words(generation: Generation, text: str) -> list[list[Node]]:
    """By lane, each node that exists with the words of `text` nearest to it and their cosines."""
    plans = generation.plans_in_force
    assert plans is not None
    words = _words(text)
    encoder, projection = _projected(generation.model.config.model_dump_json())
    rows = _unit(projection(encoder.encode(words))) if words else np.zeros((0, 1))
    lanes: list[list[Node]] = []
    for nodes_NP, valid_N in zip(
        plans.nodes_BKNP[0].cpu().numpy(), plans.valid_BKN[0].tolist(), strict=True
    ):
        cosines = _unit(nodes_NP) @ rows.T if words else np.zeros((len(nodes_NP), 0))
        lanes.append(
            [
                {"node": n, "words": _near(words, cosines[n])}
                for n, exists in enumerate(valid_N)
                if exists
            ]
        )
    return lanes


def _near(words: list[str], cosines: np.ndarray) -> list[dict[str, object]]:
    best = np.argsort(-cosines)[:WORDS]
    return [
        {"word": words[i], "cosine": round(float(cosines[i]), 2)}
        for i in best
        if cosines[i] >= NEAR
    ]


def _words(text: str) -> list[str]:
    found = (word.casefold() for word in re.findall(r"[^\W\d_]{3,}", text))
    return list(dict.fromkeys(word for word in found if word not in FUNCTION_WORDS))[:2000]


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
