"""`pdt model`: make a Parallel Decoder Transformer from a trunk, and check a saved one."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from pdt.cli.options import AsJson, ConfigFile, Out, Overrides, Preset, Revision, Seed, chosen
from pdt.model.names import as_written
from pdt.terms import NotesCondition

app = typer.Typer(help="Make and check models.", no_args_is_help=True)


@app.command("init")
def init(
    out: Out,
    trunk: Annotated[
        str | None,
        typer.Argument(help="Directory, GGUF file or hub id; default: the preset's own trunk."),
    ] = None,
    revision: Revision = None,
    preset: Preset = "canonical",
    config: ConfigFile = None,
    overrides: Overrides = None,
    seed: Seed = 0,
    with_trunk: Annotated[
        bool, typer.Option("--with-trunk", help="Also store the frozen weights.")
    ] = False,
) -> None:
    """Split a pretrained decoder into an untrained model: it computes what the decoder computes."""
    from pdt.model.build import absolute_source, config_for, from_trunk, random_model
    from pdt.model.kept_trunk import keep_trunk
    from pdt.model.store import save_model
    from pdt.model.weights import open_weights
    from pdt.provenance import refuse_existing
    from pdt.tokenizer import find_tokenizer, load_tokenizer

    refuse_existing(out)
    if trunk is not None:
        weights = open_weights(trunk, revision)
        tree = config_for(
            weights,
            preset,
            source=absolute_source(trunk),
            revision=revision,
            file=config,
            overrides=overrides or (),
        )
        model = from_trunk(config=tree, seed=seed)
    elif (tree := chosen(preset, config, overrides)).trunk.source is not None:
        model = from_trunk(config=tree, seed=seed)
    else:
        model, with_trunk = random_model(tree, seed=seed), True
        if find_tokenizer(tree.records.tokenizer) is not None:
            model.tokenizer = load_tokenizer(tree.records.tokenizer)
    save_model(model, out, with_trunk=with_trunk)
    keep_trunk(model)
    print(out)


@app.command("pack")
def pack(
    source: Annotated[
        Path,
        typer.Argument(
            parser=as_written, metavar="MODEL", help="A saved model or a checkpoint of a run."
        ),
    ],
    out: Out,
    half: Annotated[
        bool, typer.Option("--half", help="Store in 16 bits: half the bytes, nearly the numbers.")
    ] = False,
    trunk_of: Annotated[
        str | None,
        typer.Option(
            help="Leave the trunk out: it is in that packed model (nano), or that GGUF file."
        ),
    ] = None,
) -> None:
    """Write a model with its trunk and tokenizer, so that it needs nothing else."""
    import torch

    from pdt.config import edit_config
    from pdt.model.store import load_model, save_model, share_trunk
    from pdt.model.trained import TRAINED, trained_of
    from pdt.provenance import refuse_existing
    from pdt.tokenizer import find_tokenizer, load_tokenizer

    refuse_existing(out)
    model = load_model(source)
    tokenizer = model.config.records.tokenizer
    if model.tokenizer is None and find_tokenizer(tokenizer) is not None:
        model.tokenizer = load_tokenizer(tokenizer)
    assert model.trunk_identity is not None
    dtype = torch.float16 if half else torch.float32
    # Where the trunk and its states once lay is nobody's business.
    places = ["training.trunk_cache.directory=null"]
    if Path(model.config.trunk.source or "").is_absolute():  # not a hub id
        places.append("trunk.source=null")
    model.config = edit_config(model.config, places, where="pack")
    if trunk_of is None:
        model.trunk_identity = replace(model.trunk_identity, source=None)
    else:
        share_trunk(model, trunk_of, dtype, out)
    trained = trained_of(source)
    inputs = {} if trained is None else {TRAINED: trained.model_dump(mode="json")}
    save_model(model, out, with_trunk=trunk_of is None, dtype=dtype, inputs=inputs)
    print(out)


@app.command("part")
def part(
    source: Annotated[
        Path,
        typer.Argument(
            parser=as_written, metavar="MODEL", help="A saved model or a checkpoint of a run."
        ),
    ],
    out: Out,
) -> None:
    """Give each lane a stack of its own, a copy of the one that they shared."""
    from pdt.model.build import part_lanes
    from pdt.model.store import load_model, save_model
    from pdt.provenance import refuse_existing

    refuse_existing(out)
    save_model(part_lanes(load_model(source)), out)
    print(out)


@app.command("notes")
def notes(
    source: Annotated[
        Path,
        typer.Argument(
            parser=as_written, metavar="MODEL", help="A saved model or a checkpoint of a run."
        ),
    ],
    condition: Annotated[NotesCondition, typer.Option(help="Which notes its lanes will read.")],
    out: Out,
) -> None:
    """Let lanes that were trained without notes (no_dynamic) read them from now on.

    Bus and self-only go on from the same weights where both are made of one such model.
    """
    from pdt.model.build import give_notes
    from pdt.model.store import load_model, save_model
    from pdt.provenance import refuse_existing

    refuse_existing(out)
    save_model(give_notes(load_model(source), condition), out)
    print(out)


@app.command("quantise")
def quantise(
    source: Annotated[
        Path,
        typer.Argument(
            parser=as_written, metavar="MODEL", help="A saved model or a checkpoint of a run."
        ),
    ],
    out: Out,
    bits: Annotated[int, typer.Option(help="8 or 4, for what is stored as floats.")] = 4,
) -> None:
    """Write a model whose large weights lie in GGUF's blocks of 8 or 4 bits.

    What the trunk's own GGUF file holds in Q8_0, Q4_0 or Q4_1 stays as it lies there.
    """
    from dataclasses import replace

    from pdt.config import edit_config
    from pdt.errors import UsageError
    from pdt.model.packing import is_packed, trunk_values
    from pdt.model.packing import quantise as quantised
    from pdt.model.store import load_model, save_model
    from pdt.model.trained import TRAINED, trained_of
    from pdt.model.trunk import tensors_digest
    from pdt.model.weights import open_weights
    from pdt.provenance import refuse_existing

    if bits not in (8, 4):
        raise UsageError(f"--bits is {bits}. Weights are packed in 8 or 4 bits.")
    refuse_existing(out)
    model = load_model(source)
    if is_packed(model):
        raise UsageError(f"{source} is quantised already.\nGive the model that it was made from.")
    identity = model.trunk_identity
    assert identity is not None
    gguf = identity.source if (identity.source or "").endswith(".gguf") else None
    quantised(model, bits, None if gguf is None else open_weights(gguf))
    digest = tensors_digest(trunk_values(model))
    model.trunk_identity = replace(identity, source=None, revision=None, digest=digest)
    if Path(model.config.trunk.source or "").is_absolute():
        model.config = edit_config(model.config, ["trunk.source=null"], where="quantise")
    trained = trained_of(source)
    inputs = {} if trained is None else {TRAINED: trained.model_dump(mode="json")}
    inputs |= {"quantised": {"bits": bits, "trunk_of": identity.digest}}
    save_model(model, out, with_trunk=True, inputs=inputs)
    print(out)


@app.command("show")
def show(
    directory: Annotated[
        Path, typer.Argument(parser=as_written, metavar="MODEL", help="A model directory.")
    ],
    as_json: AsJson = False,
) -> None:
    """Check every file of a saved model against its manifest, and print what it is bound to."""
    from pdt.model.names import model_directory
    from pdt.model.store import read_binding

    config, identity = read_binding(model_directory(directory))
    facts = {
        "trunk": asdict(identity),
        "family": config.trunk.shape.family.value,
        "fork_layer": config.lanes.fork_layer,
        "layers": config.trunk.shape.layers,
        "lanes": config.lanes.count,
        "notes_condition": config.notes.condition.value,
    }
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    print(f"{directory}: every file is whole")
    print(f"  trunk            {identity.source or 'in this directory'}")
    print(f"  trunk digest     {identity.digest}")
    print(f"  fork             layer {config.lanes.fork_layer} of {config.trunk.shape.layers}")
    print(f"  lanes            {config.lanes.count}")
    print(f"  notes condition  {config.notes.condition.value}")
