"""The processes of a run: who this one is, what all of them agree on, and stopping together.

One process is one rank of one, and everything here is then plain: the loop is the same either way.

Paper: §6.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from pdt.errors import Followed, PdtError
from pdt.provenance import new_directory

PATIENCE = timedelta(hours=2)
"""How long ranks wait for one that digests a large checkpoint; one that dies ends all at once."""


class Ranks:
    """`count` processes that torchrun started, of which this is number `rank`; else just this one.

    Words and decisions travel over gloo; only gradients and weights take the devices' own way.
    """

    def __init__(self) -> None:
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ["RANK"]) if self.count > 1 else 0
        self.device = torch.device("cpu")
        if torch.cuda.is_available():
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
            torch.cuda.set_device(self.device)
        if self.count > 1 and not dist.is_initialized():
            dist.init_process_group(self._backend, timeout=PATIENCE)

    @property
    def first(self) -> bool:
        """The one that writes metrics, prints, and commits checkpoints."""
        return self.rank == 0

    def mesh(self) -> DeviceMesh:
        """All ranks in a row, as FSDP shards over them; a process alone is a group of one."""
        if not dist.is_initialized():
            store = dist.HashStore()  # type: ignore[attr-defined]
            dist.init_process_group(self._backend, store=store, rank=0, world_size=1)
        return init_device_mesh(self.device.type, (self.count,))

    def leave(self) -> None:
        """The last call of the process, when all went well: one rank of several ends here.

        DTensor's caches keep the group and gloo's threads alive when it is destroyed, and a thread
        that drops a tensor while Python shuts down aborts the process (pytorch#179291): a run that
        had ended well would be reported as failed. So Python does not shut down.
        """
        if dist.is_initialized():
            dist.destroy_process_group()
        if self.count > 1:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    @contextmanager
    def together(self) -> Iterator[None]:
        """What stops one rank stops all, with one message. No rank may wait for another inside."""
        problem: PdtError | OSError | None = None
        try:
            yield
        except (PdtError, OSError) as raised:
            if self.count == 1:
                raise
            problem = raised
        error = self.first_error(None if problem is None else f"On rank {self.rank}: {problem}")
        disk = self.highest(int(isinstance(problem, OSError)))
        if error is not None and not self.first:
            raise Followed("the first rank says why")
        if error is not None:
            raise problem or (OSError(error) if disk else PdtError(error))

    def first_error(self, text: str | None) -> str | None:
        """The error of the lowest rank that has one, to all; None when all went well."""
        if self.count == 1:
            return text
        speaker = int(self._all(self.rank if text is not None else self.count, dist.ReduceOp.MIN))
        return None if speaker == self.count else self._broadcast(text or "", speaker)

    def broadcast(self, text: str) -> str:
        """What the first rank says."""
        return text if self.count == 1 else self._broadcast(text, 0)

    def highest(self, value: int) -> int:
        return value if self.count == 1 else int(self._all(value, dist.ReduceOp.MAX))

    def sum_named(self, values: Mapping[str, float], names: list[str]) -> dict[str, float]:
        """Sums over all ranks of what each has under these names; what none has is left out."""
        has = torch.tensor([float(name in values) for name in names], dtype=torch.float64)
        value = torch.tensor([values.get(name, 0.0) for name in names], dtype=torch.float64)
        both = self.sum(torch.stack([has, value]))
        return {n: v for n, h, v in zip(names, *both.tolist(), strict=True) if h}

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all ranks."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    @contextmanager
    def new_directory(self, target: Path) -> Iterator[Path]:
        """A fresh directory all ranks write into; it becomes `target` when every one ended well."""
        with ExitStack() as stack:
            work = target
            with self.together():
                if self.first:
                    work = stack.enter_context(new_directory(target))
            yield Path(self.broadcast(str(work)))
            with self.together():  # every rank has written
                pass
            with self.together():  # no rank goes on before the directory is in its place
                stack.close()

    @property
    def _backend(self) -> str:
        return "gloo" if self.device.type == "cpu" else f"cpu:gloo,{self.device.type}:nccl"

    def _all(self, value: int, operation: dist.ReduceOp.RedOpType) -> Tensor:
        number = torch.tensor(value)
        dist.all_reduce(number, operation)
        return number

    def _broadcast(self, text: str, speaker: int) -> str:
        data = torch.frombuffer(bytearray(text.encode() or b"\0"), dtype=torch.uint8)
        size = torch.tensor(len(data))
        dist.broadcast(size, speaker)
        if self.rank != speaker:
            data = torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(data, speaker)
        return bytes(data.tolist()).decode().rstrip("\0")
