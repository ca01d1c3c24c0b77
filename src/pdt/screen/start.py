"""What every run of a screen starts from: the preset's trunk, or a trained model as far as it fits.

A variant has other shapes than the model. A component that some variant cannot take over is drawn
anew in every run, the baseline's too: else the screen would measure what was forgotten. Decoder
layers are always taken over, wherever the fork is: a layer that becomes the lanes' is cloned into
each, one that becomes shared is the mean of the lanes' own.

Paper: Appendix A, §3.1, §3.3.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from pdt.config import PdtConfig
from pdt.errors import BindingMismatch, UsageError
from pdt.model.build import from_trunk, random_model
from pdt.model.census import meta_model
from pdt.model.pdt import ParallelDecoder
from pdt.model.sizes import stored_shapes
from pdt.model.store import COORDINATION, LANES, load_model, read_binding
from pdt.model.trunk import TrunkIdentity, tensors_digest
from pdt.screen.manifest import SealedStart
from pdt.terms import CodebookStart, Component
from pdt.tokenizer import load_tokenizer
from pdt.training.curriculum import component_of

_CHANGE = (".narrow", ".widen")


def drawn_anew(directory: Path, configs: Sequence[PdtConfig]) -> tuple[str, ...]:
    """The components that some variant has no place for, or whose gates must start elsewhere."""
    saved, _ = read_binding(directory)
    for config in configs:
        _check_trunk_shape(directory, saved, config)
    stored = stored_shapes(directory / LANES) | stored_shapes(directory / COORDINATION)
    anew: set[Component] = set()
    for config in configs:
        for name, parameter in meta_model(config).named_parameters():
            component = component_of(name)
            if component in (None, Component.LANES):
                continue
            if stored.get(_moved(name, config, saved)) != tuple(parameter.shape):
                anew.add(component)
    if len({config.reads.plan_gate for config in configs}) > 1:
        anew.add(Component.PLAN_KV)
    if len({config.reads.notes_gate for config in configs}) > 1:
        anew.add(Component.SNC)
    kept = Component.NOTE_WRITER not in anew
    if kept and any(c.notes.codebook_start is CodebookStart.STATES for c in configs):
        raise UsageError(
            "Every run would keep the note writer of the start model and throw its codes away.\n"
            "Keep them: --set notes.codebook_start=drawn."
        )
    return tuple(sorted(component.value for component in anew))


def start_model(start: SealedStart, config: PdtConfig, seed: int) -> ParallelDecoder:
    """The model of a run before its first step."""
    if start.model is None:
        build = random_model if config.trunk.source is None else _from_trunk
        model = build(config, seed=seed)
    else:
        model = taken_over(load_model(start.model), config, seed, anew=start.anew)
    if model.tokenizer is None:
        model.tokenizer = load_tokenizer(config.records.tokenizer)
    return model


def taken_over(
    base: ParallelDecoder, config: PdtConfig, seed: int, *, anew: Sequence[str]
) -> ParallelDecoder:
    """A model of another configuration with everything of `base` that has a place in it."""
    model = random_model(config, seed=seed)
    theirs = dict(base.named_parameters())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            component = component_of(name)
            if component in (None, Component.LANES):
                value = _decoder_weight(base, name, config)
            else:
                old = theirs.get(_moved(name, config, base.config))
                fits = old is not None and old.shape == parameter.shape
                value = old.data if fits and component.value not in anew else None  # type: ignore[union-attr]
            if value is not None and value.dim() > parameter.dim():
                value = value.mean(dim=0)  # of the lanes
            if value is not None:
                parameter.copy_(value)  # over the lane axis, where the layer was shared
    digest = tensors_digest((name, value.data) for name, value in model.trunk.shared())
    model.trunk_identity = TrunkIdentity(None, None, digest)
    model.tokenizer = base.tokenizer
    return model


def _decoder_weight(base: ParallelDecoder, name: str, config: PdtConfig) -> Tensor | None:
    """A weight of the trunk or of the lanes, from wherever `base` has it; None keeps the drawn."""
    theirs, fork = dict(base.named_parameters()), config.lanes.fork_layer
    match name.split("."):
        case ["trunk", "layers", index, *rest]:
            return _layer_weight(base, int(index), ".".join(rest))
        case ["trunk", "upper", index, *rest] if config.lanes != base.config.lanes:
            return _layer_weight(base, fork + int(index), ".".join(rest))
        case ["lanes", index, "decoder", *rest] if not name.endswith(_CHANGE):
            return _layer_weight(base, fork + int(index), ".".join(rest))
        case ["lanes", *_]:
            same = config.lanes == base.config.lanes and name in theirs
            return theirs[name].data if same else None
    return theirs[name].data


def _layer_weight(base: ParallelDecoder, layer: int, rest: str) -> Tensor:
    """A weight of a decoder layer: [...] where it is shared, [K, ...] where every lane has one."""
    theirs, fork = dict(base.named_parameters()), base.config.lanes.fork_layer
    if layer < fork:
        return theirs[f"trunk.layers.{layer}.{rest}"].data
    owned = f"lanes.{layer - fork}.decoder.{rest}"
    if owned in theirs:
        return theirs[owned].data
    map_name = owned.removesuffix(".weight")
    frozen = theirs[f"trunk.upper.{layer - fork}.{rest}"].data
    if f"{map_name}.narrow" not in theirs:  # a bias of a projection, which no lane changes
        return frozen
    return frozen + theirs[f"{map_name}.widen"].data @ theirs[f"{map_name}.narrow"].data


def _moved(name: str, config: PdtConfig, saved: PdtConfig) -> str:
    """The name in the saved model of what stands at the same layer of the decoder."""
    top, *rest = name.split(".")
    if top != "lanes":
        return name
    layer = int(rest[0]) + config.lanes.fork_layer - saved.lanes.fork_layer
    return ".".join([top, str(layer), *rest[1:]])


def _check_trunk_shape(directory: Path, saved: PdtConfig, config: PdtConfig) -> None:
    if saved.trunk.shape != config.trunk.shape or saved.lanes.count != config.lanes.count:
        raise BindingMismatch(
            f"{directory} cannot be the start of every variant.",
            [
                ("trunk.shape.layers", saved.trunk.shape.layers, config.trunk.shape.layers),
                ("trunk.shape.width", saved.trunk.shape.width, config.trunk.shape.width),
                ("lanes.count", saved.lanes.count, config.lanes.count),
            ],
            "Give --start a model on the trunk of the screen, or a design without a trunk axis.",
            sides=("start", "variant"),
        )


def _from_trunk(config: PdtConfig, *, seed: int) -> ParallelDecoder:
    return from_trunk(config=config, seed=seed)
