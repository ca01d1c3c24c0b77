"""Complete-answer time for the same number of tokens, all ways in one run.

Every side reads the same prompt and writes the same number of tokens: the packed frontier, its
lanes one after another, one lane, `transformers` writing all tokens in one stream, the same as a
batch of three (what Skeleton-of-Thought does after its skeleton), and llama.cpp on the same GGUF.

Paper: §3.6, Eq. 6, Table 3 (parallel execution).
"""

import importlib.util
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pdt.bench.timing import Timing, interleave, ratio
from pdt.config import PdtConfig, TrunkShape, load_config
from pdt.generation.ledger import Ledger
from pdt.generation.serial import write_serially
from pdt.generation.settings import GenerationSettings
from pdt.generation.timing import TimedAnswer, time_answer
from pdt.model.build import from_trunk, random_model
from pdt.model.census import FP32, expanded_prompt_cache, traffic
from pdt.model.pdt import ParallelDecoder

PACKED, SERIAL, ONE = "packed", "three serial lanes", "one lane (a third of the tokens)"
STREAM, BATCH, LLAMA = (
    "transformers, one stream",
    "transformers, batch of three",
    "llama.cpp, 4-bit",
)


@dataclass(frozen=True)
class LatencyResult:
    """What one model measured."""

    subject: str
    prompt_tokens: int
    lane_tokens: int
    sides: dict[str, Timing]
    ceiling: float
    """Of packed against serial, where weight traffic is the cost."""
    barrier_share: float
    """Barrier time over decode time, in the packed side."""
    shared_over_expanded: float
    """Bytes of the prompt cache below the fork, over those of one copy a lane."""
    late_over_early: float
    """Median time of the last quarter of rounds over the first: attention's growth and no more."""
    missing: tuple[str, ...]
    """Sides that could not run here, and why."""

    def gain(self, side: str) -> tuple[float, float, float]:
        """How many times faster packed is than `side`, with quartiles."""
        return ratio(self.sides[side], self.sides[PACKED])


def bench_latency(
    subject: str, *, gguf: Path | None, prompt_tokens: int, lane_tokens: int, repeats: int
) -> LatencyResult:
    """Build the model (real weights where a GGUF is given) and time every side in turn."""
    config = load_config(subject)
    model = random_model(config) if gguf is None else from_trunk(str(gguf), config=config)
    tokens = torch.randint(
        config.trunk.shape.vocabulary // 2, (prompt_tokens,),
        generator=torch.Generator().manual_seed(0),
    ).tolist()  # fmt: skip
    settings = GenerationSettings(max_tokens=lane_tokens, stop_at_eos=False)
    answers: list[TimedAnswer] = []
    sides: dict[str, Callable[[], object]] = {
        PACKED: lambda: answers.append(time_answer(model, tokens, settings)),
        SERIAL: lambda: write_serially(model, tokens, settings),
        ONE: lambda: write_serially(model, tokens, settings, lanes=[0]),
    }
    peers, missing = _peers(config, gguf, tokens, lane_tokens, config.lanes.count)
    taken = interleave({**sides, **peers}, repeats=repeats, warmup=1)
    quarter = max(1, lane_tokens // 4)
    rounds = [answer.round_seconds[1:] for answer in answers[1:]]
    early = statistics.median(t for run in rounds for t in run[:quarter])
    late = statistics.median(t for run in rounds for t in run[-quarter:])
    ledgers = [answer.ledger for answer in answers]
    barrier = [ledger.seconds.get("barrier", 0.0) / ledger.seconds["decode"] for ledger in ledgers]
    return LatencyResult(
        subject=subject,
        prompt_tokens=prompt_tokens,
        lane_tokens=lane_tokens,
        sides=taken,
        ceiling=traffic(config).ceiling,
        barrier_share=statistics.median(barrier),
        shared_over_expanded=_cache_ratio(model, ledgers[-1], prompt_tokens),
        late_over_early=late / early,
        missing=tuple(missing),
    )


def _cache_ratio(model: ParallelDecoder, ledger: Ledger, prompt_tokens: int) -> float:
    expanded = expanded_prompt_cache(model.config, prompt_tokens=prompt_tokens, weight_bytes=FP32)
    return ledger.shared_cache_bytes / expanded


def _peers(
    config: PdtConfig, gguf: Path | None, tokens: list[int], lane_tokens: int, lanes: int
) -> tuple[Mapping[str, Callable[[], object]], list[str]]:
    """The competitors that are installed here; the names of those that are not."""
    peers: dict[str, Callable[[], object]] = {}
    missing = []
    if importlib.util.find_spec("transformers") is None:
        missing.append("transformers is not installed: pip install transformers")
    else:
        plain = plain_transformers(config.trunk.shape, gguf)
        peers[STREAM] = lambda: generate(plain, [tokens], lanes * lane_tokens)
        peers[BATCH] = lambda: generate(plain, [tokens] * lanes, lane_tokens)
    if gguf is None:
        missing.append("llama.cpp reads GGUF files, and this subject has random weights")
    elif importlib.util.find_spec("llama_cpp") is None:
        missing.append("llama.cpp is not installed: pip install llama-cpp-python")
    else:
        peers[LLAMA] = _llama_cpp(gguf, tokens, lanes * lane_tokens)
    return peers, missing


def plain_transformers(shape: TrunkShape, gguf: Path | None) -> Any:
    import transformers

    transformers.logging.set_verbosity_error()
    if gguf is not None:
        return transformers.AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32
        ).eval()
    settings = transformers.LlamaConfig(
        hidden_size=shape.width,
        intermediate_size=shape.feed_forward,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.query_heads,
        num_key_value_heads=shape.kv_heads,
        vocab_size=shape.vocabulary,
        max_position_embeddings=shape.max_positions,
        tie_word_embeddings=shape.tied_head,
    )
    return transformers.LlamaForCausalLM(settings).eval()


@torch.inference_mode()
def generate(plain: Any, rows: list[list[int]], new_tokens: int) -> object:
    batch = torch.tensor(rows)
    return plain.generate(
        batch,
        attention_mask=torch.ones_like(batch),
        max_new_tokens=new_tokens,
        min_new_tokens=new_tokens,
        do_sample=False,
        pad_token_id=0,
    )


def _llama_cpp(gguf: Path, tokens: list[int], new_tokens: int) -> Callable[[], object]:
    from llama_cpp import Llama

    llama = Llama(
        str(gguf),
        n_ctx=len(tokens) + new_tokens + 8,
        n_threads=torch.get_num_threads(),
        verbose=False,
    )

    def run() -> int:
        llama.reset()
        written = 0
        for _ in llama.generate(tokens, temp=0.0):
            written += 1
            if written == new_tokens:
                break
        return written

    return run
