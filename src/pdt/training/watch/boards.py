"""The same metrics for TensorBoard, and for Weights & Biases where a project is named."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pdt.config import PdtConfig
from pdt.errors import UsageError
from pdt.terms import Loss
from pdt.training.watch.metrics import EVALUATION, PLANS_APART, Metrics

TENSORBOARD = "tensorboard"
_PLACES = {
    "learning_rate": "optimizer",
    "gradient_norm": "optimizer",
    "stage": "optimizer",
    "seconds": "speed",
    "prompt_tokens": "speed",
    "section_tokens": "speed",
}
_PREFIXES = {
    "plan_gate_": "gates",
    "notes_gate_": "gates",
    "inner_gate_": "gates",
    "codes_in_use_": "codebooks",
    "usage_deficit_": "codebooks",
    PLANS_APART: "planner",
}
_LOSSES = {"loss", *(loss.value for loss in Loss)}


def scalars(line: Metrics) -> dict[str, float]:
    """The numbers of a line under the names that boards group by."""
    folder = "held_out" if line["kind"] == EVALUATION else "train"
    found: dict[str, float] = {}
    for name, value in line.items():
        prefix = next((p for p in _PREFIXES if name.startswith(p)), None)
        if name in _LOSSES or (prefix is not None and folder == "held_out"):
            found[f"{folder}/{name}"] = value
        elif prefix is not None:
            found[f"{_PREFIXES[prefix]}/{name}"] = value
        elif name in _PLACES and folder == "train":
            found[f"{_PLACES[name]}/{name}"] = value
    return found


class TensorBoard:
    """Event files beside the metrics; what a resumed run writes again is purged."""

    def __init__(self, run: Path, first_step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        purge = first_step if (run / TENSORBOARD).exists() else None
        self._writer: Any = SummaryWriter(str(run / TENSORBOARD), purge_step=purge)

    def take(self, line: Metrics) -> None:
        for name, value in scalars(line).items():
            self._writer.add_scalar(name, value, line["step"])
        self._writer.flush()  # what a kill loses here, a resumed run would not write again

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """One run of a project; its id lies in the run's directory, so that it is continued."""

    def __init__(self, run: Path, config: PdtConfig) -> None:
        import wandb

        kept = run / "wandb-id.txt"
        known = kept.read_text(encoding="utf-8").strip() if kept.exists() else None
        try:
            self._board: Any = wandb.init(
                project=config.training.watch.wandb_project,
                name=run.resolve().name,
                dir=str(run),
                id=known,
                resume="allow",
                config=config.model_dump(mode="json"),
            )
        except wandb.Error as error:
            raise UsageError(
                f"Weights & Biases could not be opened: {error}\n"
                "Run `wandb login`, set WANDB_MODE=offline, or set "
                "training.watch.wandb_project=null."
            ) from error
        kept.write_text(self._board.id + "\n", encoding="utf-8")

    def take(self, line: Metrics) -> None:
        # A step that a resumed run takes again is older than what the service holds, which drops
        # it; the numbers are the same.
        self._board.log(scalars(line), step=line["step"])

    def close(self) -> None:
        self._board.finish()


def check_boards(config: PdtConfig) -> None:
    """Refuse a board that was asked for by name and cannot be had."""
    if config.training.watch.wandb_project is None:
        return
    found = find_spec("wandb")
    if found is None or found.origin is None:  # a folder of that name is no package
        raise UsageError(
            "training.watch.wandb_project is set, and wandb is not installed.\n"
            "Install it with `pip install 'pdt[wandb]'`, or set the key to null."
        )


def open_boards(
    run: Path, config: PdtConfig, first_step: int, say: Callable[[str], None]
) -> list[TensorBoard | WeightsAndBiases]:
    """What the configuration asks for; TensorBoard that is not installed is said once."""
    boards: list[TensorBoard | WeightsAndBiases] = []
    if config.training.watch.wandb_project is not None:
        boards.append(WeightsAndBiases(run, config))
    if config.training.watch.tensorboard:
        try:
            boards.append(TensorBoard(run, first_step))
        except ImportError:
            say(
                "tensorboard is not installed: no event files are written. Install it with "
                "`pip install 'pdt[watch]'`, or set training.watch.tensorboard=false."
            )
    return boards
