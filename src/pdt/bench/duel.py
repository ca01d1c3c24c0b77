"""All ways to write one answer of several sections, in one run, interleaved.

Every side reads the same prompt and writes the same number of tokens: packed lanes in each bank and
each number type, the same kernels with one stack for all lanes, lanes one after another, and the
peers that a user would run instead: `transformers` and llama.cpp, in one stream and as a batch.
Beside each stand the bytes that a round must read and how long the memory takes to give them.

Paper: §3.6, Eq. 6, Table 3 (parallel execution).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from pdt.bench.peers import LLAMA, LLAMA_BATCH, llama_sides, transformers_sides
from pdt.bench.timing import Timing, interleave, memory_reader, ratio
from pdt.config import load_config
from pdt.generation.serial import write_serially
from pdt.generation.settings import GenerationSettings
from pdt.generation.timing import TimedAnswer, time_answer
from pdt.model.build import from_trunk, random_model
from pdt.model.census import FP32, kv_bytes
from pdt.model.packing import CHANGES, changes, is_packed, quantise
from pdt.model.weights import open_weights

if TYPE_CHECKING:
    from pdt.model.pdt import ParallelDecoder

FULL, LOW_RANK, SHARED = "full banks", "rank 16", "one stack for all lanes"
BANKS: dict[str, list[str]] = {
    FULL: [],
    LOW_RANK: ["lanes.bank=low_rank", "lanes.rank=16"],
    SHARED: ["lanes.shared=true"],
}
NUMBERS: dict[str, int | None] = {"fp32": None, "8 bits": 8, "4 bits": 4}
SERIAL = f"three serial lanes, {LOW_RANK}, 4 bits"
MEMORY_BYTES = 400_000_000


@dataclass(frozen=True)
class Side:
    """One way to write the answer."""

    name: str
    run: Callable[[], object]
    bytes_a_round: int
    """Weights, and the keys and values of half of what is written."""
    rounds: int
    """How often those bytes are read in one answer."""
    decoded: Callable[[], float] | None = None
    """Seconds of the last answer that went into rounds, where the side says so."""


@dataclass(frozen=True)
class SideResult:
    name: str
    timing: Timing
    bytes_a_round: int
    rounds: int
    decode: Timing | None

    def over_reading(self, bytes_per_second: float) -> float | None:
        """Time of a round over that of reading its bytes, by medians; 1 is the limit."""
        if self.decode is None:
            return None
        return self.decode.median * bytes_per_second / (self.rounds * self.bytes_a_round)


@dataclass(frozen=True)
class DuelResult:
    prompt_tokens: int
    lane_tokens: int
    lanes: int
    threads: int
    sides: tuple[SideResult, ...]
    bytes_per_second: float
    """What this machine's memory gave during the same run."""
    missing: tuple[str, ...]

    def gain(self, side: str, over: str) -> tuple[float, float, float]:
        """How many times faster `side` is than `over`, with quartiles, repeat by repeat."""
        timing = {one.name: one.timing for one in self.sides}
        return ratio(timing[over], timing[side])

    def goals(self) -> list[str]:
        """The goals of this comparison, each with what was measured, where both sides ran."""
        ran, lanes = {side.name for side in self.sides}, f"packed, {LOW_RANK}, 4 bits"
        lines = []
        for over, goal in (
            (LLAMA, 2.0), (LLAMA_BATCH, 1.2), (f"packed, {SHARED}, 4 bits", 0.95), (SERIAL, None),
        ):  # fmt: skip
            if {lanes, over} <= ran:
                middle, low, high = self.gain(lanes, over)
                verdict = "" if goal is None else f" (goal {goal}: {_met(middle >= goal)})"
                lines.append(
                    f"{lanes} against {over}: {middle:.2f}× ({low:.2f}–{high:.2f}){verdict}"
                )
        return lines


def bench_duel(
    preset: str,
    *,
    gguf: Path | None,
    prompt_tokens: int,
    lane_tokens: int,
    repeats: int,
    only: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> DuelResult:
    """Build every side and time them in turn; `only` keeps those whose name holds one of its
    words."""
    config = load_config(preset)
    lanes = config.lanes.count
    tokens = torch.randint(
        config.trunk.shape.vocabulary // 2, (prompt_tokens,),
        generator=torch.Generator().manual_seed(0),
    ).tolist()  # fmt: skip

    def wanted(name: str) -> bool:
        return not only or any(word in name for word in only)

    sides: list[Side] = []
    for bank, edits in BANKS.items():
        for number, bits in NUMBERS.items():
            names = [f"packed, {bank}, {number}"]
            names += [SERIAL] if (bank, bits) == (LOW_RANK, 4) else []
            if any(map(wanted, names)):
                say(f"building {names[0]}")
                model = _model(preset, edits, gguf, bits)
                built = [_packed(names[0], model, tokens, lane_tokens, clock)]
                if len(names) > 1:
                    built.append(_serial(model, tokens, lane_tokens))
                sides += [side for side in built if wanted(side.name)]
    missing: list[str] = []
    for peers in (transformers_sides, llama_sides):
        found, reason = peers(config.trunk.shape, gguf, tokens, lane_tokens, lanes, wanted)
        # A peer tells the time of its decoding by the wall alone.
        walled = clock is time.perf_counter
        sides += [Side(*peer[:4], peer[4] if walled else None) for peer in found]
        missing += [reason] if reason else []
    decoded: dict[str, list[float]] = {side.name: [] for side in sides}

    def watched(side: Side) -> Callable[[], object]:
        def run() -> None:
            side.run()
            if side.decoded is not None:
                decoded[side.name].append(side.decoded())

        return run

    say(f"timing {len(sides)} sides")
    runs = {side.name: watched(side) for side in sides}
    taken = interleave(
        {**runs, "memory": memory_reader(MEMORY_BYTES)}, repeats=repeats, warmup=1, clock=clock
    )
    results = tuple(
        SideResult(
            side.name, taken[side.name], side.bytes_a_round, side.rounds,
            Timing(tuple(decoded[side.name][1:])) if side.decoded else None,
        )
        for side in sides
    )  # fmt: skip
    speed = MEMORY_BYTES / taken["memory"].median
    return DuelResult(
        prompt_tokens, lane_tokens, lanes, torch.get_num_threads(), results, speed, tuple(missing)
    )


def _met(reached: bool) -> str:
    return "met" if reached else "missed"


def bytes_a_round(model: "ParallelDecoder", prompt: int, written: int) -> int:
    """What a packed round must read: every weight on its way once, changes of low rank beside
    blocks in half precision, and keys and values of the prompt (below the fork once for all lanes)
    and of what each lane has written."""
    config, shape = model.config, model.config.trunk.shape
    read: list[nn.Module | None] = [model.trunk.layers, model.trunk.upper, model.trunk.norm]
    read.append(model.trunk.embed_tokens if model.trunk.lm_head is None else model.trunk.lm_head)
    for layer in model.lane_layers:
        read += [layer.decoder, layer.plan_kv.q_proj, layer.plan_kv.o_proj]
        read += [layer.snc.q_proj, layer.snc.o_proj]
    weights = sum(
        value.numel() * value.element_size()
        for module in read
        if module is not None
        for value in module.state_dict().values()
    )
    if is_packed(model):
        floats = (value for layer in model.lane_layers for value in changes(layer))
        weights -= sum(
            value.numel() * (value.element_size() - CHANGES.itemsize) for value in floats
        )
    lanes, upper = config.lanes.count, len(model.lane_layers)
    cached = (shape.layers - upper) * (prompt + lanes * written)
    cached += upper * (config.prompt_lanes * prompt + lanes * written)
    return weights + cached * kv_bytes(config, FP32)


def _model(
    preset: str, edits: Sequence[str], gguf: Path | None, bits: int | None
) -> "ParallelDecoder":
    config = load_config(preset, overrides=list(edits))
    model = random_model(config) if gguf is None else from_trunk(str(gguf), config=config)
    if bits is not None:
        # At 4 bits the file's own blocks; at 8 the same values again, each block a little rounded.
        source = open_weights(str(gguf)) if gguf is not None and bits == 4 else None
        quantise(model, bits, source)
    return model


def _packed(
    name: str, model: "ParallelDecoder", tokens: list[int], lane_tokens: int,
    clock: Callable[[], float],
) -> Side:  # fmt: skip
    settings = GenerationSettings(max_tokens=lane_tokens, stop_at_eos=False)
    answers: list[TimedAnswer] = []
    return Side(
        name,
        lambda: answers.append(time_answer(model, tokens, settings, clock=clock)),
        bytes_a_round(model, len(tokens), lane_tokens // 2),
        lane_tokens - 1,  # the first token comes from the prompt's states
        lambda: sum(answers[-1].round_seconds[1:]),
    )


def _serial(model: "ParallelDecoder", tokens: list[int], lane_tokens: int) -> Side:
    settings = GenerationSettings(max_tokens=lane_tokens, stop_at_eos=False)
    size = bytes_a_round(model, len(tokens), lane_tokens // 2)
    lanes = model.config.lanes.count
    run = lambda: write_serially(model, tokens, settings)  # noqa: E731
    return Side(SERIAL, run, size, lanes * (lane_tokens - 1))
