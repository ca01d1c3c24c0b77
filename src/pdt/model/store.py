"""Save and load: a directory bound to its trunk, fork, lane count and notes condition.

    config.json                 the configuration, and the identity of the trunk
    lanes.safetensors           the upper stacks, with their lane axis
    coordination.safetensors    planner, Plan-KV, SNC, note writer, heads
    trunk.safetensors           only when packed with the trunk; another model may name this one
    tokenizer.json              when the trunk came with a tokenizer
    manifest.json               size and digest of each file

Paper: §6 (what a checkpoint is bound to).
"""

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from pdt.binding import refuse_other
from pdt.config import PdtConfig, validate_config
from pdt.errors import BindingMismatch, CorruptFile, UsageError, require_type
from pdt.model.build import absolute_source, check_shape, fill_trunk
from pdt.model.kept_trunk import keep_trunk, read_kept
from pdt.model.names import model_directory, packaged_models
from pdt.model.packing import is_packed, lay_out_blocks, trunk_values
from pdt.model.pdt import ParallelDecoder
from pdt.model.pieces import write_tensors
from pdt.model.sizes import NoDraws, check_sizes, stored_shapes
from pdt.model.tokenizer import TOKENIZER
from pdt.model.trunk import TrunkIdentity, tensors_digest
from pdt.model.weights import PretrainedWeights, open_weights
from pdt.provenance import (
    check_manifest,
    new_directory,
    read_json_object,
    write_json,
    write_manifest,
)
from pdt.tokenizer import StudentTokenizer

FORMAT = 1
CONFIG, LANES, COORDINATION = "config.json", "lanes.safetensors", "coordination.safetensors"
TRUNK = "trunk.safetensors"
_FREE = (
    "trunk.source", "notes.codebook_start", "records.", "objective.", "training.", "sources.",
    "teacher.", "cluster.",
)  # fmt: skip
"""Where the trunk lies, how records are made and what is learned may differ; not the model."""


def save_model(
    model: ParallelDecoder,
    directory: str | Path,
    *,
    with_trunk: bool = False,
    dtype: torch.dtype | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> None:
    """Write the model whole, or not at all. `dtype` stores weights in another float type.

    `inputs` is what the manifest says it was made from.
    """
    require_type(
        model, ParallelDecoder, "The model", "what from_trunk, random_model or load_model gives"
    )
    require_type(directory, (str, Path), "The directory", "a path to make")
    with new_directory(Path(directory)) as work:
        for name, part in model_tensors(model, with_trunk=with_trunk).items():
            write_tensors(work / name, part if dtype is None else _as_dtype(part, dtype))
        write_binding(model, work, inputs)


def model_tensors(model: ParallelDecoder, *, with_trunk: bool) -> dict[str, dict[str, Tensor]]:
    """What each weight file of a model directory holds."""
    parts: dict[str, dict[str, Tensor]] = {LANES: {}, COORDINATION: {}, TRUNK: {}}
    for name, value in model.state_dict().items():
        if name.startswith("trunk."):
            parts[TRUNK][name.removeprefix("trunk.")] = value
        elif name.startswith("lanes.") and ".decoder." in name:
            parts[LANES][name] = value
        else:
            parts[COORDINATION][name] = value
    if not with_trunk:
        del parts[TRUNK]
    return parts


def write_binding(
    model: ParallelDecoder, directory: Path, inputs: Mapping[str, Any] | None = None
) -> None:
    """What the weights of a directory are bound to, beside them, and the manifest over all."""
    identity = model.trunk_identity
    if identity is None:
        raise UsageError("The model has no weights yet: build it with from_trunk or random_model.")
    if (directory / TRUNK).exists():
        shared = trunk_values(model, load_file(directory / TRUNK))
        identity = TrunkIdentity(identity.source, identity.revision, tensors_digest(shared))
    config = model.config.model_dump(mode="json")
    write_json(directory / CONFIG, {"format": FORMAT, "config": config, "trunk": asdict(identity)})
    if model.tokenizer is not None:
        (directory / TOKENIZER).write_bytes(model.tokenizer.as_json().encode())
    write_manifest(directory, made_by="pdt.save_model", config=config, inputs=inputs)


def load_model(
    directory: str | Path,
    *,
    trunk: str | None = None,
    expect: PdtConfig | None = None,
    dtype: torch.dtype = torch.float32,
) -> ParallelDecoder:
    """Read a saved model after checking every digest and what it is bound to.

    `directory` may be a checkpoint of a run, or the name of a model in the package such as nano;
    a directory of that name is written as a path, ./nano.
    `trunk` says where the shared weights lie now, if they have moved. `expect` is what the caller's
    run is: another architecture or notes condition is refused.
    """
    directory = model_directory(directory)
    config, identity = read_binding(directory)
    if expect is not None:
        check_binding(config, expect, directory)
    packed = _packed_trunk(directory, trunk, identity)
    kept = read_kept(identity) if packed is None and trunk is None else None
    source = _open_source(config, trunk, identity) if packed is None and kept is None else None
    stored = stored_shapes(directory / LANES) | stored_shapes(directory / COORDINATION)
    if packed is not None:
        stored |= stored_shapes(packed, "trunk.")
    if kept is not None:
        stored |= {f"trunk.{name}": tuple(value.shape) for name, value in kept.items()}
    check_sizes(config, stored, directory, with_trunk=source is None)
    with NoDraws():  # every value is replaced
        model = ParallelDecoder(config).to(dtype)
    lay_out_blocks(model, stored)
    state = _load(directory / LANES) | _load(directory / COORDINATION)
    if packed is not None:
        shared = _load(packed)
        bare = {name.removeprefix("trunk."): value for name, value in shared.items()}
        digest = tensors_digest(trunk_values(model, bare))
        model.trunk_identity = TrunkIdentity(identity.source, identity.revision, digest)
        state |= shared
    elif kept is not None:
        model.trunk_identity = identity
        state |= {f"trunk.{name}": value for name, value in kept.items()}
    else:
        assert source is not None
        model.trunk_identity = fill_trunk(model, *source)
        state |= {f"trunk.{name}": parameter.data for name, parameter in model.trunk.shared()}
    _check_trunk(directory, identity, model.trunk_identity)
    _take(model, state)
    keep_trunk(model)
    if (directory / TOKENIZER).exists():
        eos = config.records.tokenizer.eos
        model.tokenizer = StudentTokenizer.from_file(directory / TOKENIZER, eos=eos)
    return model


def _take(model: ParallelDecoder, state: Mapping[str, Tensor]) -> None:
    """Every value as it lies in its file: mapped, not copied, and copied where it is written to."""
    for name, own in model.state_dict(keep_vars=True).items():
        own.data = state[name].to(own.dtype)


def read_binding(directory: Path) -> tuple[PdtConfig, TrunkIdentity]:
    """What a model directory is, after its files were checked against the manifest."""
    if not (directory / CONFIG).is_file():
        raise UsageError(
            f"{directory} is not a pdt model: it has no {CONFIG}.\n"
            "Give what `pdt model init` made, a checkpoint of a run, or a model of the package: "
            f"{', '.join(packaged_models())}."
        )
    check_manifest(directory, required=[CONFIG, LANES, COORDINATION])
    saved = read_json_object(directory / CONFIG)
    if saved.get("format") != FORMAT:
        raise CorruptFile(
            f"{directory / CONFIG} has format {saved.get('format')!r}; this pdt reads {FORMAT}.\n"
            "Load it with the pdt version that wrote it."
        )
    config = validate_config(saved.get("config", {}), where=str(directory / CONFIG))
    return config, _identity(saved.get("trunk"), directory / CONFIG)


def _identity(found: Any, where: Path) -> TrunkIdentity:
    kinds = {"source": str | None, "revision": str | None, "digest": str}
    right = isinstance(found, dict) and found.keys() == kinds.keys()
    if not right or not all(isinstance(found[key], kind) for key, kind in kinds.items()):
        raise CorruptFile(f"{where} does not say which trunk it stands on.\nTake it again.")
    return TrunkIdentity(**found)


def share_trunk(model: ParallelDecoder, other: str, dtype: torch.dtype, out: Path) -> None:
    """Bind `model` to the trunk packed with another model; `dtype` is what that one stores.

    One that lies beside `out` is bound by its name alone, so that both can move together.
    """
    if other.endswith(".gguf"):
        return _stand_on_file(model, Path(other))
    directory = model_directory(other)
    if is_packed(model):
        raise UsageError(
            "The trunk of a quantised model is its own.\nPack the model that it was made from."
        )
    packed = directory / TRUNK
    if not packed.is_file():
        raise UsageError(
            f"{other} has no trunk of its own.\nName a model that `pdt model pack` wrote."
        )
    theirs = _load(packed)
    for name, parameter in model.trunk.shared():
        if not torch.equal(parameter.data.to(dtype), theirs[f"trunk.{name}"]):
            raise UsageError(
                f"The trunk of {other} is not this model's: {name} differs.\n"
                "Pack this model with its own trunk (without --trunk-of)."
            )
    digest = tensors_digest((n, theirs[f"trunk.{n}"]) for n, _ in model.trunk.shared())
    beside = directory.resolve().parent == out.resolve().parent
    model.trunk_identity = TrunkIdentity(directory.name if beside else other, None, digest)


def check_binding(
    saved: PdtConfig, run: PdtConfig, directory: Path, *, free: tuple[str, ...] = _FREE
) -> None:
    """Refuse another architecture or notes condition, with all differences side by side."""
    refuse_other(
        saved.model_dump(mode="json"),
        run.model_dump(mode="json"),
        f"{directory} is not bound to this run.",
        "A model never crosses an architecture or a notes condition (§6).\n"
        "Choose the matching preset, or start from `pdt model init`.",
        sides=("saved", "run"),
        free=free,
    )


def _check_trunk(directory: Path, saved: TrunkIdentity, found: TrunkIdentity) -> None:
    if saved.digest != found.digest:
        raise BindingMismatch(
            f"{directory} stands on another trunk.",
            [
                ("source", saved.source, found.source),
                ("revision", saved.revision, found.revision),
                ("digest", saved.digest[:16], found.digest[:16]),
            ],
            "The lanes were cloned from the saved trunk and mean nothing on another one.\n"
            "Give that trunk (--trunk PATH), or split this one with `pdt model init`.",
            sides=("saved", "found"),
        )


def _packed_trunk(directory: Path, trunk: str | None, identity: TrunkIdentity) -> Path | None:
    """The trunk that lies in a model directory: this one, or the one that `trunk` or it names."""
    if trunk is not None:
        places = [model_directory(trunk)]
    elif identity.source is not None:
        named = identity.source
        places = [directory, directory.parent / named, model_directory(named)]
    else:
        places = [directory]
    return next((place / TRUNK for place in places if os.path.isfile(place / TRUNK)), None)


def _stand_on_file(model: ParallelDecoder, file: Path) -> None:
    """Bind `model` to the decoder file that its trunk was taken from, wherever that lies later."""
    identity = model.trunk_identity
    assert identity is not None
    if identity.source is None or Path(identity.source).resolve() != file.resolve():
        raise UsageError(
            f"The trunk of this model was taken from {identity.source or 'no file'}, not {file}.\n"
            "Name that file, or pack the model with its own trunk (without --trunk-of)."
        )
    model.trunk_identity = TrunkIdentity(file.name, None, identity.digest)


def _found_file(name: str) -> str:
    """Where a decoder file lies that a packed model names without a place."""
    places = [Path(".cache"), Path(__file__).parents[3] / ".cache", Path()]
    for place in places:
        if (place / name).is_file():
            return str((place / name).resolve())
    raise UsageError(
        f"This model stands on the decoder {name}, which is not here.\n"
        "Run `make weights` in the project's directory (98 MB), or say where it lies with --trunk."
    )


def _open_source(
    config: PdtConfig, trunk: str | None, identity: TrunkIdentity
) -> tuple[PretrainedWeights, str, str | None]:
    """The decoder the trunk was taken from, where it lies, and its revision."""
    source = identity.source if trunk is None else absolute_source(trunk)
    if source is None:
        raise UsageError(
            "The model was saved without its trunk, and the trunk came from no file.\n"
            "Save it with the trunk (with_trunk=True), or give --trunk PATH."
        )
    if trunk is None and source.endswith(".gguf") and "/" not in source:
        source = _found_file(source)
    revision = identity.revision if source == identity.source else None
    weights = open_weights(source, revision)
    check_shape(config, weights)
    return weights, source, revision


def _as_dtype(part: Mapping[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    return {n: value.to(dtype) if value.is_floating_point() else value for n, value in part.items()}


def _load(path: Path) -> dict[str, Tensor]:
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CorruptFile(
            f"{path} is not a whole safetensors file: {error}.\nTake it again."
        ) from error
    prefix = "trunk." if path.name == TRUNK else ""
    return {prefix + name: value for name, value in tensors.items()}
