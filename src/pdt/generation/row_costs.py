"""What more rows in a round cost on this machine, measured once for a model and kept.

PDT_ROW_COST=auto    measured (the default)
PDT_ROW_COST=0.2     one more row costs a fifth of a lane's share of a round; nothing is measured
"""

import hashlib
import json
import math
import os
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch

from pdt.errors import UsageError
from pdt.generation.rounds import RoundAsked, rounds_alone
from pdt.model.kernels.build import cache_directory
from pdt.model.kernels.matmul import machine
from pdt.model.pdt import ParallelDecoder
from pdt.provenance import atomic_path

LENGTHS = (1, 4, 16)
"""Tokens a lane takes in, in the rounds that are timed."""
REPEATS = 3
AHEAD = 4
"""A row's cost is the slope from the rows of a plain round to so many times as many."""


@dataclass(frozen=True)
class RowCosts:
    """Seconds of a round, by its rows; or one share for all."""

    seconds: tuple[tuple[int, float], ...] = ()
    always: float | None = None

    def share(self, rows: int) -> float:
        """What one row more costs, over a row's part of a plain round; 1 where it is not known."""
        if self.always is not None:
            return self.always
        plain, longer = self._at(rows), self._at(AHEAD * rows)
        if plain is None or longer is None:
            return 1.0
        return max(0.0, (longer / plain - 1) / (AHEAD - 1))

    def _at(self, rows: int) -> float | None:
        for (low, before), (high, after) in pairwise(self.seconds):
            if rows <= high:
                return before + (after - before) * (rows - low) / (high - low)
        return None


def row_costs(model: ParallelDecoder) -> RowCosts:
    """What `PDT_ROW_COST` says, or what was measured here for such a model."""
    text = os.environ.get("PDT_ROW_COST", "auto")
    if text != "auto":
        try:
            share = float(text)
        except ValueError:
            share = math.nan
        if not 0 <= share < math.inf:
            raise UsageError(f"PDT_ROW_COST is {text!r}. Say auto, or a number such as 0.2.")
        return RowCosts(always=share)
    kept = _kept_path(model)
    found = _read(kept)
    if found is None:
        found = measure(model)
        _keep(kept, found)
    return found


@torch.inference_mode()
def measure(model: ParallelDecoder) -> RowCosts:
    """Rounds of one document; of all repeats the fastest, since other programs only slow one."""
    config = model.config
    tokens_BT = torch.zeros(1, 32, dtype=torch.long, device=model.device)
    prompt = model.read_prompt(tokens_BT)
    plans = model.plan(prompt)
    answers = []
    for length in LENGTHS:
        frontier = model.open_lanes(prompt, plans, suffix_tokens=(REPEATS + 1) * length)
        run = torch.zeros(1, config.lanes.count, length, dtype=torch.long, device=model.device)
        asked = RoundAsked(frontier, run, [[length] * config.lanes.count], None)
        answers.append((length, rounds_alone(model), asked))
    best: dict[int, float] = {}
    for repeat in range(REPEATS + 1):
        for length, answer, asked in answers:
            start = time.perf_counter()
            answer(asked)
            spent = time.perf_counter() - start
            if repeat:
                rows = length * config.lanes.count
                best[rows] = min(spent, best.get(rows, spent))
    return RowCosts(tuple(sorted(best.items())))


def _kept_path(model: ParallelDecoder) -> Path:
    tensors = [*model.parameters(), *model.buffers()]
    config = model.config
    names = {
        **machine(),
        "threads": torch.get_num_threads(),
        "compiled": os.environ.get("PDT_KERNELS", "on"),
        "trunk": config.trunk.shape.model_dump(mode="json"),
        "lanes": config.lanes.model_dump(mode="json"),
        "bytes": sum(tensor.numel() * tensor.element_size() for tensor in tensors),
    }
    digest = hashlib.sha256(json.dumps(names, sort_keys=True).encode()).hexdigest()[:16]
    return cache_directory() / "rows" / f"{digest}.json"


def _keep(kept: Path, found: RowCosts) -> None:
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(kept) as partial:
            partial.write_text(json.dumps({"machine": machine(), "seconds": found.seconds}))
    except OSError:
        return  # it is measured again by the next process


def _read(kept: Path) -> RowCosts | None:
    try:
        pairs = json.loads(kept.read_text())["seconds"]
        return RowCosts(tuple((int(rows), float(seconds)) for rows, seconds in pairs))
    except (OSError, ValueError, KeyError, TypeError):
        return None
