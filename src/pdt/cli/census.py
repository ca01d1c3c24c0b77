"""`pdt census`: what a configuration costs, before a weight is loaded."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pdt.cli.options import AsJson, ConfigFile, Overrides, Preset, chosen
from pdt.errors import UsageError

if TYPE_CHECKING:
    from pdt.config import PdtConfig
    from pdt.model.cards import Prediction
    from pdt.model.census import Census, Memory, Traffic


def census(
    preset: Preset = "canonical",
    config: ConfigFile = None,
    overrides: Overrides = None,
    prompt_tokens: Annotated[
        int | None, typer.Option(min=1, help="Also give memory, for a prompt of this length.")
    ] = None,
    section_tokens: Annotated[int, typer.Option(min=1, help="Tokens each lane writes.")] = 1000,
    batch: Annotated[int, typer.Option(min=1, help="Documents at once.")] = 1,
    gpus: Annotated[
        int, typer.Option(min=1, help="Devices that training is spread over, one rank each.")
    ] = 1,
    train: Annotated[
        bool,
        typer.Option(
            "--train", help="Also run a training step on tensors without storage, for its peak."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Count parameters (Table 4), and tell what memory and speed-up to expect."""
    from pdt.model.cards import predict
    from pdt.model.census import take_census, traffic

    tree = chosen(preset, config, overrides)
    ceiling = tree.planner.max_prompt_tokens
    if prompt_tokens is not None and prompt_tokens > ceiling:
        raise UsageError(
            f"--prompt-tokens {prompt_tokens} is over planner.max_prompt_tokens {ceiling}.\n"
            "Such a prompt would be refused; raise the ceiling with --set to count for it."
        )
    if train and prompt_tokens is None:
        raise UsageError("--train needs a size: give --prompt-tokens, and --section-tokens.")
    counts = take_census(tree)
    weights = traffic(tree, counts)
    predicted = predict(tree, counts)
    memory = None
    if prompt_tokens is not None:
        memory = _memory(tree, counts, prompt_tokens, section_tokens, batch, gpus)
        if train:
            title = "training here, FP32, " + ("with" if tree.training.recompute else "without")
            peak = _predicted(tree, prompt_tokens, section_tokens, batch)
            memory[f"{title} recomputation"] = peak
    if as_json:
        report = _as_json(counts, weights, memory)
        report["predicted_tokens_per_second"] = [asdict(one) for one in predicted]
        print(json.dumps(report, indent=2))
        return
    console = Console()
    console.print(_count_table(counts))
    _print_ceiling(console, tree, weights)
    console.print(_card_table(predicted, tree.lanes.count))
    for title, part in (memory or {}).items():
        console.print(_memory_table(title, part))


def _memory(
    tree: "PdtConfig", counts: "Census", prompt: int, section: int, batch: int, gpus: int
) -> dict[str, "Memory"]:
    from pdt.model.census import Memory, expanded_prompt_cache, inference_memory
    from pdt.training.memory import training_memory

    size = {"prompt_tokens": prompt, "section_tokens": section, "batch": batch}
    expanded = expanded_prompt_cache(tree, prompt_tokens=prompt, batch=batch)
    return {
        "inference, BF16": inference_memory(tree, counts, **size),
        "for comparison: the shared cache copied to every lane": Memory(
            {"prompt cache below the fork (expanded)": expanded}
        ),
        f"training in BF16, each of {gpus} device(s)": training_memory(
            tree, counts, **size, gpus=gpus
        ),
    }


def _predicted(tree: "PdtConfig", prompt: int, section: int, batch: int) -> "Memory":
    from pdt.training.peak import predict_step_memory

    return predict_step_memory(
        tree,
        prompt_tokens=prompt,
        section_tokens=section,
        documents=batch,
        facts=tree.records.limits.facts.max,
    )


def _count_table(counts: "Census") -> Table:
    table = Table("component", "parameters", title="Census (Table 4)", title_justify="left")
    table.columns[1].justify = "right"
    parts = [
        ("shared, frozen", counts.shared, counts.shared_total),
        ("physical upper stacks", counts.physical, counts.physical_total),
        ("planner and coordination", counts.coordination, counts.coordination_total),
    ]
    for title, rows, total in parts:
        table.add_row(f"[bold]{title}", f"[bold]{total:,}")
        for name, count in rows.items():
            table.add_row(f"  {name}", f"{count:,}")
        table.add_section()
    table.add_row("[bold]total materialized", f"[bold]{counts.total:,}")
    return table


def _print_ceiling(console: Console, tree: "PdtConfig", weights: "Traffic") -> None:
    lanes = tree.lanes.count
    console.print(
        f"A packed round reads {weights.packed_round:,} weights for {lanes} tokens; "
        f"{lanes} one-lane rounds read {weights.serial_rounds:,}.\n"
        f"Where weight traffic is the cost, packing gives at most [bold]{weights.ceiling:.2f}×[/], "
        f"whatever Eq. 6's span reduction (at most {lanes}) says of depth."
    )


def _card_table(predicted: "list[Prediction]", lanes: int) -> Table:
    table = Table(
        "card", f"{lanes} lanes packed", "one after another", "weights in BF16",
        title="A prediction: tokens a second at most, by the bandwidth of a card's memory alone. "
        "None of them has run this.",
        title_justify="left",
    )  # fmt: skip
    for one in predicted:
        fits = "fit" if one.fits else "do not fit"
        table.add_row(one.card, f"{one.packed:,.0f}", f"{one.serial:,.0f}", fits)
    return table


def _memory_table(title: str, memory: "Memory") -> Table:
    table = Table("what", "GiB", title=title, title_justify="left")
    table.columns[1].justify = "right"
    for name, size in memory.parts.items():
        table.add_row(name, f"{size / 2**30:,.2f}")
    if len(memory.parts) > 1:
        table.add_section()
        table.add_row("[bold]total", f"[bold]{memory.total / 2**30:,.2f}")
    return table


def _as_json(
    counts: "Census", weights: "Traffic", memory: dict[str, "Memory"] | None
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "shared": {**counts.shared, "total": counts.shared_total},
        "physical": {**counts.physical, "total": counts.physical_total},
        "coordination": {**counts.coordination, "total": counts.coordination_total},
        "total": counts.total,
        "traffic": {
            "packed_round": weights.packed_round,
            "serial_rounds": weights.serial_rounds,
            "ceiling": round(weights.ceiling, 4),
        },
    }
    if memory is not None:
        result["bytes"] = {title: {**m.parts, "total": m.total} for title, m in memory.items()}
    return result
