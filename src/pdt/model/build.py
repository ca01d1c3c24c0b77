"""A Parallel Decoder Transformer from a pretrained decoder, or from random numbers.

Paper: §3.1, §3.3, Appendix A.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pdt.config import PdtConfig, edit_config, load_config
from pdt.config.presets import read_yaml
from pdt.errors import BindingMismatch, require_type
from pdt.model.linear import Linear
from pdt.model.pdt import ParallelDecoder
from pdt.model.trunk import TrunkIdentity, tensors_digest
from pdt.model.weights import PretrainedWeights, open_weights
from pdt.terms import NotesCondition
from pdt.tokenizer import StudentTokenizer


def from_trunk(
    source: str | Path | None = None,
    *,
    config: PdtConfig | None = None,
    preset: str = "canonical",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> ParallelDecoder:
    """Split a pretrained decoder: load the shared part, clone the upper layers into every lane.

    With a `config`, the decoder must have its trunk shape. With a `preset` alone, the trunk of the
    preset is replaced by the decoder's own shape, forked at two thirds as in the canonical run.
    """
    require_type(
        source, (str, Path, type(None)), "The trunk", "a directory, a GGUF file or a hub id"
    )
    require_type(config, (PdtConfig, type(None)), "The configuration", "what pdt.load_config gives")
    given = config or load_config(preset)
    name = given.trunk.source if source is None else absolute_source(str(source))
    if name is None:
        raise BindingMismatch(
            "The configuration names no trunk.",
            [("trunk.source", "null", "a path or hub id")],
            "Give a source, or use random_model for random weights.",
            sides=("config", "needed"),
        )
    revision = given.trunk.revision if name == given.trunk.source else None
    weights = open_weights(name, revision)
    if config is None:
        config = config_for(weights, preset, source=name)
    check_shape(config, weights)
    model = _build(config, seed, dtype)
    model.trunk_identity = fill_trunk(model, weights, name, revision)
    clone_lanes(model, weights)
    model.tokenizer = _student(config, weights)
    return model


def config_for(
    weights: PretrainedWeights,
    preset: str,
    *,
    source: str,
    revision: str | None = None,
    file: Path | None = None,
    overrides: Sequence[str] = (),
) -> PdtConfig:
    """The preset around this decoder's own shape; where that differs, forked at two thirds."""
    extended = read_yaml(file)[0] if file is not None else None
    base = load_config(extended or preset)
    edits: dict[str, Any] = {}
    if base.trunk.shape != weights.shape:
        prompt = min(base.planner.max_prompt_tokens, weights.shape.max_positions)
        edits["trunk"] = {"shape": weights.shape.model_dump()}
        edits["lanes"] = {"fork_layer": max(1, round(weights.shape.layers * 2 / 3))}
        edits["planner"] = {"max_prompt_tokens": prompt}
        if (own := weights.tokenizer()) is not None and own.eos is not None:
            edits["records"] = {
                "tokenizer": {"name": "of the trunk", "sha256": None, "eos": own.eos},
                "prompt_format": own.prompt_format(),
            }
    given = {"source": source, "revision": revision}
    return load_config(preset, edits=edits, file=file, overrides=overrides, trunk=given)


def _student(config: PdtConfig, weights: PretrainedWeights) -> StudentTokenizer | None:
    """The trunk's tokenizer as the student's, ending sections as the configuration says."""
    own = weights.tokenizer()
    if own is None:
        return None
    eos = config.records.tokenizer.eos
    if own.text is None:
        return StudentTokenizer.in_memory(own.tokenizer, eos=eos)
    return StudentTokenizer(own.text, eos=eos, where=f"The tokenizer of {weights.where}")


def absolute_source(source: str) -> str:
    """A local path is remembered from the root, so that a saved model finds it from anywhere."""
    return str(Path(source).resolve()) if os.path.exists(source) else source


def random_model(config: PdtConfig, *, seed: int = 0) -> ParallelDecoder:
    """Every weight drawn from the seed; lanes start equal, as clones of one drawn decoder do."""
    require_type(config, PdtConfig, "The configuration", "what pdt.load_config gives")
    model = _build(config, seed, torch.float32)
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, Linear):
            _draw_linear(module, generator)
    nn.init.normal_(model.trunk.embed_tokens.weight, std=0.02, generator=generator)
    model.trunk_identity = TrunkIdentity(None, None, tensors_digest(model.trunk.shared()))
    return model


def part_lanes(model: ParallelDecoder) -> ParallelDecoder:
    """Lanes that shared one stack, each with a copy of its own to go on from."""
    if not model.config.lanes.shared:
        raise BindingMismatch(
            "The lanes of this model have stacks of their own already.",
            [("lanes.shared", "false", "true")],
            "Part a model that was made with --set lanes.shared=true.",
            sides=("model", "needed"),
        )
    parted = ParallelDecoder(edit_config(model.config, ["lanes.shared=false"], where="part"))
    own = parted.state_dict()
    for name, value in model.state_dict().items():
        own[name].copy_(value)  # over the lane axis, where there is one now
    parted.trunk_identity, parted.tokenizer = model.trunk_identity, model.tokenizer
    return parted


def give_notes(model: ParallelDecoder, condition: NotesCondition) -> ParallelDecoder:
    """A model whose lanes have read no note so far, for the condition under which they will.

    So bus and control go on from the same weights, as far as notes had no part in them. The weights
    are shared with `model`.
    """
    if model.config.notes.condition is not NotesCondition.NO_DYNAMIC:
        raise BindingMismatch(
            "The lanes of this model read notes already.",
            [("notes.condition", model.config.notes.condition, NotesCondition.NO_DYNAMIC)],
            "A trained model keeps its condition: train one from a start of the other.",
            sides=("model", "needed"),
        )
    setting = f"notes.condition={condition.value}"
    given = ParallelDecoder(edit_config(model.config, [setting], where="notes"))
    given.load_state_dict(model.state_dict())
    given.trunk_identity, given.tokenizer = model.trunk_identity, model.tokenizer
    return given


def check_shape(config: PdtConfig, weights: PretrainedWeights) -> None:
    """The decoder on disk must be the one the configuration was written for."""
    ours, theirs = config.trunk.shape.model_dump(), weights.shape.model_dump()
    rows = [
        (f"trunk.shape.{key}", ours[key], theirs[key]) for key in ours if ours[key] != theirs[key]
    ]
    if rows:
        raise BindingMismatch(
            f"{weights.where} is not the trunk this configuration describes.",
            rows,
            "Choose the matching preset, or leave the shape out to take the decoder's own.",
            sides=("config", "file"),
        )


def fill_trunk(
    model: ParallelDecoder, weights: PretrainedWeights, source: str | None, revision: str | None
) -> TrunkIdentity:
    """Copy the shared part in and return its identity."""

    def copied() -> Iterable[tuple[str, Tensor]]:
        for name, parameter in model.trunk.shared():
            value = weights.tensor(hf_name(name, model.config.lanes.fork_layer))
            parameter.data.copy_(value)
            yield name, value

    return TrunkIdentity(source, revision, tensors_digest(copied()))


def clone_lanes(model: ParallelDecoder, weights: PretrainedWeights) -> None:
    """What each lane owns of every upper layer starts as the pretrained layer."""
    fork = model.config.lanes.fork_layer
    for index, layer in enumerate(model.lane_layers):
        for name, bank in layer.decoder.named_parameters():
            if not name.endswith((".narrow", ".widen")):  # a change has nothing to be a clone of
                pretrained = weights.tensor(f"model.layers.{fork + index}.{name}")
                bank.data.copy_(pretrained)  # over the lane axis


def hf_name(name: str, fork_layer: int) -> str:
    """What the pretrained decoder calls a tensor of the trunk."""
    if name.startswith("upper."):
        _, index, rest = name.split(".", 2)
        return f"model.layers.{fork_layer + int(index)}.{rest}"
    return name if name.startswith("lm_head") else f"model.{name}"


def _build(config: PdtConfig, seed: int, dtype: torch.dtype) -> ParallelDecoder:
    """The module, its coordination drawn from the seed; the global random state is untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ParallelDecoder(config).to(dtype)


def _draw_linear(module: Linear, generator: torch.Generator) -> None:
    outputs, inputs = module.weight.shape[-2:]
    drawn = torch.randn(outputs, inputs, generator=generator) * inputs**-0.5
    module.weight.data.copy_(drawn)
    if module.bias is not None:
        module.bias.data.copy_(torch.randn(outputs, generator=generator) * 0.02)
