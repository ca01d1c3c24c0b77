"""`pdt train`: the whole curriculum, from compiled records to a model directory a step."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pdt.cli.options import ConfigFile, Overrides, Preset, Seed, chosen


def train(
    records: Annotated[Path, typer.Argument(help="A compiled corpus (see `pdt record compile`).")],
    run: Annotated[Path, typer.Option("--out", help="The run's directory.")],
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Start from this saved model.", show_default=False),
    ] = None,
    preset: Preset = "canonical",
    config: ConfigFile = None,
    overrides: Overrides = None,
    seed: Seed = 0,
    until: Annotated[
        int | None, typer.Option("--until", help="Stop after this many steps.", show_default=False)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the run's newest whole checkpoint.")
    ] = False,
) -> None:
    """Train the planner, the lanes and the notes bus by the curriculum.

    Metrics go to metrics.jsonl in the run's directory. A killed run goes on with --resume.
    """
    from pdt.provenance import refuse_existing
    from pdt.records.batch import RecordShards
    from pdt.terms import Split
    from pdt.training.loop import Trainer

    tree = chosen(preset, config, overrides)
    shards = RecordShards(records, split=Split.TRAIN)
    if resume:
        trainer = Trainer.resume(shards, run, tree)
    else:
        refuse_existing(run)
        trainer = Trainer(_start(model, tree, seed), shards, run)
    trainer.train(until, watch=_show)
    print(run)


def _start(directory: Path | None, tree: Any, seed: int) -> Any:
    from pdt.model.build import from_trunk, random_model
    from pdt.model.store import load_model

    if directory is not None:
        model = load_model(directory, expect=tree)
        model.config = tree
        return model
    if tree.trunk.source is None:
        return random_model(tree, seed=seed)
    return from_trunk(config=tree, seed=seed)


def _show(metrics: dict[str, Any]) -> None:
    """One line a step on stderr."""
    names = ("loss", "token", "plan", "gradient_norm", "seconds")
    numbers = "  ".join(f"{name} {metrics[name]:.4g}" for name in names if name in metrics)
    typer.echo(f"stage {metrics['stage']}  step {metrics['step']}  {numbers}", err=True)
