"""What a user would run instead: `transformers` and llama.cpp, in one stream and as a batch.

Each gives its sides as name, call, bytes a round, rounds, and the seconds of its last decoding
where it tells them; or the reason why it cannot run here.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pdt.bench.latency import generate, plain_transformers
from pdt.config import TrunkShape

Peer = tuple[str, Callable[[], object], int, int, Callable[[], float] | None]
Peers = tuple[list[Peer], str | None]
STREAM, BATCH = "transformers, fp32, one stream", "transformers, fp32, batch of three"
LLAMA, LLAMA_BATCH = "llama.cpp, 4 bits, one stream", "llama.cpp, 4 bits, batch of three"


def transformers_sides(
    shape: TrunkShape, gguf: Path | None, tokens: list[int], lane_tokens: int, lanes: int,
    wanted: Callable[[str], bool],
) -> Peers:  # fmt: skip
    if not wanted(STREAM) and not wanted(BATCH):
        return [], None
    if importlib.util.find_spec("transformers") is None:
        return [], "transformers is not installed: pip install transformers"
    plain = plain_transformers(shape, gguf)
    seen = {p.data_ptr(): p.numel() * p.element_size() for p in plain.parameters()}
    size, all_tokens = sum(seen.values()), lanes * lane_tokens
    stream = lambda: generate(plain, [tokens], all_tokens)  # noqa: E731
    batch = lambda: generate(plain, [tokens] * lanes, lane_tokens)  # noqa: E731
    peers: list[Peer] = [
        (STREAM, stream, size, all_tokens - 1, None),
        (BATCH, batch, size, lane_tokens - 1, None),
    ]
    return [peer for peer in peers if wanted(peer[0])], None


def llama_sides(
    shape: TrunkShape, gguf: Path | None, tokens: list[int], lane_tokens: int, lanes: int,
    wanted: Callable[[str], bool],
) -> Peers:  # fmt: skip
    """llama.cpp's own server loop, called in this process: a slot a sequence, one context."""
    if not wanted(LLAMA) and not wanted(LLAMA_BATCH):
        return [], None
    if gguf is None:
        return [], "llama.cpp reads GGUF files, and this subject has random weights"
    if importlib.util.find_spec("xllamacpp") is None:
        return [], "llama.cpp is not installed: pip install 'pdt[bench]' (xllamacpp)"
    all_tokens, size = lanes * lane_tokens, gguf.stat().st_size
    peers: list[Peer] = []
    for name, slots, count in ((LLAMA, 1, all_tokens), (LLAMA_BATCH, lanes, lane_tokens)):
        if wanted(name):
            run, decoded = _llama(gguf, tokens, slots, count)
            peers.append((name, run, size, count - 1, decoded))
    return peers, None


def _llama(
    gguf: Path, tokens: list[int], slots: int, count: int
) -> tuple[Callable[[], object], Callable[[], float]]:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(gguf)
    params.n_parallel = slots
    params.n_ctx = slots * -(-(len(tokens) + count + 8) // 256) * 256
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = torch.get_num_threads()
    params.verbosity = -1
    server = xllamacpp.Server(params)
    last: list[Any] = []

    def run() -> None:
        prompt: Any = tokens if slots == 1 else [tokens] * slots
        body = {
            "prompt": prompt, "max_tokens": count, "temperature": 0, "ignore_eos": True,
            "cache_prompt": False,
        }  # fmt: skip
        answers: list[Any] = []
        found = server.handle_completions(body, answers.append)
        answer = answers[-1] if found is None else found
        # Of several sequences the usage counts one.
        written = len(answer["choices"]) * answer["usage"]["completion_tokens"]
        if written != slots * count:
            raise RuntimeError(f"llama.cpp wrote {written} tokens, not {slots * count}.")
        last[:] = [answer]

    def decoded() -> float:
        return float(last[0]["timings"]["predicted_ms"]) / 1e3

    return run, decoded
