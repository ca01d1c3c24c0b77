"""A run as one picture: losses, gates opening, codebooks in use, stage by stage.

Paper: §6, Table 2.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdt.config import PdtConfig
from pdt.errors import UsageError
from pdt.provenance import atomic_path
from pdt.terms import Loss
from pdt.training.curriculum import Stage, stages_of
from pdt.training.watch.metrics import EVALUATION, STEP, Metrics, read_metrics
from pdt.training.watch.status import run_config

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHADES = ("#ffffff", "#eef2f7")
_EXECUTION = (Loss.TOKEN, Loss.PROGRESS, Loss.FACT_WRITE, Loss.ROUTE)
_PLANNING = (Loss.PLAN, Loss.ORDER, Loss.POINT)
_CHANNEL = (Loss.NOTE, Loss.COMMITMENT, Loss.CODEBOOK, Loss.USAGE, Loss.READ_OUT)


def plot_run(run: Path, out: Path) -> None:
    """Draw the run's metrics into a PNG (or what else the suffix of `out` names)."""
    config, lines = run_config(run), read_metrics(run)
    steps = [line for line in lines if line["kind"] == STEP]
    if not steps:
        raise UsageError(f"{run} has no step yet; draw it later.")
    figure = draw(
        config, steps, [line for line in lines if line["kind"] == EVALUATION], run.resolve().name
    )
    kinds = figure.canvas.get_supported_filetypes()
    kind = out.suffix.removeprefix(".").lower()
    if kind not in kinds:
        raise UsageError(
            f"{out} cannot be drawn: give it one of these endings: {', '.join(sorted(kinds))}."
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(out) as partial:
            figure.savefig(partial, format=kind, dpi=110)
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error}") from error


def draw(
    config: PdtConfig, steps: Sequence[Metrics], evaluations: Sequence[Metrics], title: str
) -> Any:
    """The figure; every panel shares the axis of steps and shades the stages."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(
            "matplotlib is not installed, and a plot needs it.\n"
            "Install it with `pip install 'pdt[watch]'`."
        ) from error
    figure = Figure(figsize=(13, 11), layout="constrained")
    panels = figure.subplots(3, 2, sharex=True)
    _losses(panels[0, 0], "Sections and heads", _EXECUTION, steps, evaluations)
    _losses(panels[0, 1], "Planner", _PLANNING, steps, evaluations)
    _losses(panels[1, 0], "Notes channel", _CHANNEL, steps, evaluations)
    _gates(panels[1, 1], steps)
    _codebooks(panels[2, 0], steps, config.notes.codes)
    _optimizer(panels[2, 1], steps)
    stages = stages_of(config.training)
    for panel in panels.flat:
        _shade(panel, stages, steps[-1]["step"] + 1)
    for panel in panels[-1]:
        panel.set_xlabel("step")
    figure.suptitle(
        f"{title}: {steps[-1]['step'] + 1:,} of {stages[-1].stop_step:,} steps, "
        f"notes {config.notes.condition.value}",
        parse_math=False,
    )
    return figure


def _losses(
    panel: "Axes",
    title: str,
    names: Sequence[Loss],
    steps: Sequence[Metrics],
    evaluations: Sequence[Metrics],
) -> None:
    for index, name in enumerate(names):
        colour = f"C{index}"
        _line(panel, steps, name.value, colour=colour, label=name.value.replace("_", " "))
        held = [line for line in evaluations if name.value in line]
        places = [line["step"] for line in held]
        panel.plot(places, [line[name.value] for line in held], "D", color=colour, markersize=5)
    if any(line.get(name.value, 0) > 0 for name in names for line in steps):
        panel.set_yscale("log")
    _finish(panel, f"{title}: losses (diamonds: held out)")


def _gates(panel: "Axes", steps: Sequence[Metrics]) -> None:
    for index, (stem, label) in enumerate(
        (("plan_gate_", "σ Plan-KV"), ("notes_gate_", "σ SNC"), ("inner_gate_", "inner SNC"))
    ):
        layers = sorted(
            (n for n in steps[-1] if n.startswith(stem)), key=lambda n: int(n[len(stem) :])
        )
        for place, name in enumerate(layers):
            depth = 0.35 + 0.65 * (place + 1) / len(layers)  # upper layers darker
            said = label if place == len(layers) - 1 else None
            _line(panel, steps, name, colour=f"C{index}", label=said, alpha=depth)
    panel.set_yscale("symlog", linthresh=1e-3)  # the inner gate has a sign
    _finish(panel, "Residual gates (upper layers darker)")


def _codebooks(panel: "Axes", steps: Sequence[Metrics], codes: int) -> None:
    for index, name in enumerate(n for n in _ever(steps) if n.startswith("codes_in_use_")):
        _line(panel, steps, name, colour=f"C{index}", label=f"codebook {index}")
    wrote = [line for line in steps if "notes" in line]
    most = [min(1.0, line["notes"] / codes) for line in wrote]
    panel.plot([line["step"] for line in wrote], most, ":", color="grey", label="most possible")
    panel.set_ylim(0, 1.02)
    _finish(panel, f"Share of {codes} codes that a step's notes used")


def _optimizer(panel: "Axes", steps: Sequence[Metrics]) -> None:
    _line(panel, steps, "gradient_norm", colour="C0", label="gradient norm")
    panel.set_yscale("log")
    rates = panel.twinx()
    _line(rates, steps, "learning_rate", colour="C1", label="learning rate")
    rates.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    shown = [*panel.get_lines(), *rates.get_lines()]
    _finish(panel, "Gradient norm (left), learning rate (right)")
    panel.legend(shown, [str(line.get_label()) for line in shown], fontsize=8, loc="best")


def _line(
    panel: "Axes",
    steps: Sequence[Metrics],
    name: str,
    *,
    colour: str,
    label: str | None,
    alpha: float = 1.0,
) -> None:
    """A number over the steps that have it; where a stage does not count it the line is broken."""
    values = [line.get(name, float("nan")) for line in steps]
    marker = "." if len(steps) < 30 else None
    places = [line["step"] for line in steps]
    panel.plot(places, values, color=colour, label=label, alpha=alpha, marker=marker, linewidth=1.2)


def _ever(steps: Sequence[Metrics]) -> list[str]:
    """Every name that some step carries, in order."""
    return list(dict.fromkeys(name for line in steps for name in line))


def _shade(panel: "Axes", stages: Sequence[Stage], reached: int) -> None:
    for stage in stages:
        if stage.first_step < reached:
            stop = min(stage.stop_step, reached)
            shade = _SHADES[stage.number % 2]
            panel.axvspan(stage.first_step - 0.5, stop - 0.5, color=shade, zorder=0)
            place = (stage.first_step + stop - 1) / 2
            panel.annotate(
                f"stage {stage.number}\n{stage.plan.value}",
                (place, 0.02),
                xycoords=("data", "axes fraction"),
                ha="center",
                fontsize=7,
                color="grey",
            )
    panel.set_xlim(-0.5, reached - 0.5)


def _finish(panel: "Axes", title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    panel.set_title(title, fontsize=10, loc="left")
    panel.grid(alpha=0.3)
    panel.margins(y=0.15)  # room for the names of the stages
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    if panel.get_legend_handles_labels()[0]:
        panel.legend(fontsize=8, loc="best")
