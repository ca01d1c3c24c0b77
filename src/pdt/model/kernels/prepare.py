"""What a machine does once, before the first model runs on it: both steps together take some 15 s.

Done here, no part of a generation pays for it, and a command can say what it waits for.
"""

from collections.abc import Callable

import torch

from pdt.model.kernels.build import library
from pdt.model.kernels.matmul import Way, use_best_way

CPU = torch.device("cpu")


def prepare(device: torch.device = CPU, say: Callable[[str], object] = lambda step: None) -> Way:
    """Compile the kernels and measure the ways to multiply, unless both are kept; `say` hears."""
    if device.type == "cpu":
        say("compiling the kernels for this machine, once")
        library()
        say("measuring how this machine multiplies best, once")
    return use_best_way(device)
