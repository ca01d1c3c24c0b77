"""Time one way to multiply beside the default, in a process of its own: an instruction may trap.

    python -m pdt.model.kernels.probe onednn     JSON on stdout, one entry a shape

One thread, both ways in turn, CPU seconds, and of all repeats the fastest: what else runs on the
machine can only slow a product. Errors are against float64, over the product's largest number.
"""

import json
import math
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from pdt.model.kernels.matmul import Way, use_way

SHAPES = {
    "a prompt, 768 rows": (1, 768, 576, 1536),
    "a prompt in 3 lanes, 256 rows each": (3, 256, 576, 576),
    "a block in 3 lanes, 96 rows each": (3, 96, 576, 1536),
    "a block in 3 lanes, 32 rows each": (3, 32, 1536, 576),
    "gradients of 3 lanes over 128 rows": (3, 576, 128, 1536),
}
"""Products of a SmolLM2 training step: weights, rows, inputs, outputs."""
REPEATS = 15


def main(way: Way) -> list[dict[str, object]]:
    """Speeds in GFLOP/s and largest errors of the default and of `way`."""
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(0)
    found: list[dict[str, object]] = []
    for name, (groups, rows, ins, outs) in SHAPES.items():
        x = torch.randn(groups, rows, ins, generator=draw)
        w = torch.randn(groups, outs, ins, generator=draw) * ins**-0.5
        exact = x.double() @ w.double().transpose(1, 2)
        flops = 2e-9 * groups * rows * ins * outs
        sides = {side: _product(side, x, w) for side in (Way.DEFAULT, way)}
        seconds = dict.fromkeys(sides, math.inf)
        for _ in range(REPEATS):
            for side, run in sides.items():
                use_way(side)
                start = time.process_time()
                run()
                seconds[side] = min(seconds[side], time.process_time() - start)
        entry: dict[str, object] = {"shape": name}
        for side, prefix in ((Way.DEFAULT, "default_"), (way, "")):
            use_way(side)
            error = (sides[side]().double() - exact).abs().max() / exact.abs().max()
            entry[f"{prefix}gigaflops"] = flops / seconds[side]
            entry[f"{prefix}error"] = error.item()
        found.append(entry)
    return found


def _product(way: Way, x_GRI: Tensor, w_GOI: Tensor) -> Callable[[], Tensor]:
    """As the layers multiply: one weight with `linear`, one a lane with `bmm`."""
    dtype = torch.bfloat16 if way is Way.BF16 else torch.float32
    x, w = x_GRI.to(dtype), w_GOI.to(dtype)
    if len(x) == 1:
        return lambda: F.linear(x[0], w[0])[None]
    return lambda: torch.bmm(x, w.transpose(1, 2))


if __name__ == "__main__":
    json.dump(main(Way(sys.argv[1])), sys.stdout)
