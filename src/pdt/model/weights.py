"""Pretrained weights from a Hugging Face directory, a GGUF file or the hub.

A source is opened whole or refused: every tensor the family needs must be there with its shape, and
nothing unknown may be left over. Nothing is ever unpickled.
"""

import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pdt.config import TrunkShape
from pdt.errors import TrunkRefused, UsageError
from pdt.hub import silence_of_hub
from pdt.model.blocks import GGML_KINDS, Packed
from pdt.model.families import shape_from_gguf, shape_from_hf
from pdt.model.gguf_header import GGUFHeader, StoredTensor
from pdt.model.tokenizer import TrunkTokenizer, tokenizer_from_gguf, tokenizer_from_hf
from pdt.provenance import read_json_object
from pdt.terms import TrunkFamily

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


class PretrainedWeights(Protocol):
    """A decoder on disk: its shape, and its tensors by Hugging Face name."""

    shape: TrunkShape
    where: str

    def tensor(self, name: str) -> Tensor:
        """One tensor in fp32."""
        ...

    def blocks(self, name: str) -> Packed | None:
        """A tensor in the blocks it is stored in, where that is one of our kinds."""
        ...

    def tokenizer(self) -> TrunkTokenizer | None:
        """The tokenizer that lies with the weights, if one does."""
        ...


def open_weights(source: str, revision: str | None = None) -> PretrainedWeights:
    """A local directory or GGUF file when there is one, else a hub id at a pinned revision."""
    path = Path(source)
    if os.path.isdir(path):  # Path's own raises on names that no file can have
        return HuggingFaceDirectory(path)
    if os.path.isfile(path):
        if path.suffix == ".gguf":
            return GGUFFile(path)
        raise TrunkRefused(
            f"{path} is neither a Hugging Face directory nor a .gguf file.\n"
            "Weights are read from safetensors or GGUF; formats that can run code are not opened."
        )
    if re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", source) and not source.endswith(".gguf"):
        return HuggingFaceDirectory(_from_hub(source, revision))
    raise UsageError(f"{source} is no file, no directory and no hub id (owner/name).")


class HuggingFaceDirectory:
    """`config.json` and one `model.safetensors` or shards with their index."""

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        if not (path / "config.json").is_file():
            raise TrunkRefused(f"{path} has no config.json.\nGive a Hugging Face model directory.")
        self.shape = shape_from_hf(read_json_object(path / "config.json"), self.where)
        self._path = path
        self._open: dict[str, Any] = {}
        _check_complete(self.shape, self._stored_shapes(), self.where)

    @cached_property
    def _file_of(self) -> dict[str, str]:
        index, single = "model.safetensors.index.json", "model.safetensors"
        if (self._path / index).is_file():
            files = read_json_object(self._path / index).get("weight_map")
            if not isinstance(files, dict) or not all(map(_beside, files.values())):
                raise TrunkRefused(f"{self._path / index} is not a weight map of files beside it.")
            return files
        if (self._path / single).is_file():
            return dict.fromkeys(self._shard(single).keys(), single)
        raise TrunkRefused(
            f"{self._path} holds no model.safetensors and no index of shards.\n"
            "pdt never unpickles weights: convert .bin files to safetensors first."
        )

    def tensor(self, name: str) -> Tensor:
        value = self._shard(self._file_of[name]).get_tensor(name)
        if value.dtype not in FLOATS:
            raise TrunkRefused(
                f"{self.where}: {name} is stored as {value.dtype}, expected a float."
            )
        return value.float()

    def blocks(self, name: str) -> Packed | None:
        return None  # safetensors hold floats

    def tokenizer(self) -> TrunkTokenizer | None:
        return tokenizer_from_hf(self._path)

    def _stored_shapes(self) -> dict[str, tuple[int, ...]]:
        try:
            return {
                name: tuple(self._shard(file).get_slice(name).get_shape())
                for name, file in self._file_of.items()
            }
        except SafetensorError as error:
            raise TrunkRefused(
                f"{self.where}: its index does not fit its files: {error}.\nTake both again."
            ) from error

    def _shard(self, file: str) -> Any:
        if file not in self._open:
            try:
                self._open[file] = safe_open(self._path / file, framework="pt")
            except (OSError, SafetensorError) as error:
                raise TrunkRefused(
                    f"{self._path / file} is not a whole safetensors file: {error}.\nTake it again."
                ) from error
        return self._open[file]


class GGUFFile:
    """A single GGUF file; quantized tensors are expanded to fp32."""

    def __init__(self, path: Path) -> None:
        try:
            from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
            from gguf.quants import dequantize
        except ImportError as error:
            raise UsageError("Reading GGUF needs an extra: pip install 'pdt[gguf]'.") from error
        self.where = str(path)
        try:
            self._header = GGUFHeader(path)
        except (OSError, ValueError) as error:
            raise self._not_whole(error) from error
        self.fields = self._header.fields
        self._sizes = {int(kind): size for kind, size in GGML_QUANT_SIZES.items()}
        self._expand = lambda rows, kind: dequantize(rows, GGMLQuantizationType(kind))
        shapes = {name: tensor.shape for name, tensor in self._header.tensors.items()}
        self.shape = shape_from_gguf(self.fields, shapes, self.where)
        stored = {_hf_name(name): shape for name, shape in shapes.items()}
        _check_complete(self.shape, stored, self.where)
        self._gguf_name = {_hf_name(name): name for name in shapes}
        for tensor in self._header.tensors.values():  # nothing is loaded by half
            self._rows(tensor)

    def tensor(self, name: str) -> Tensor:
        stored = self._header.tensors[self._gguf_name[name]]
        expanded = self._expand(self._rows(stored), stored.kind)
        value = torch.from_numpy(expanded.copy()).float().reshape(stored.shape)
        return _half_split(value, self.shape.head_width) if self._in_pairs(name) else value

    def blocks(self, name: str) -> Packed | None:
        """As they lie in the file, save that rows of queries and keys stand in our order."""
        stored = self._header.tensors[self._gguf_name[name]]
        if stored.kind not in GGML_KINDS:
            return None
        rows = torch.from_numpy(self._rows(stored).copy())
        rows = _half_split(rows, self.shape.head_width) if self._in_pairs(name) else rows
        return Packed(rows, stored.shape[-1])

    def _in_pairs(self, name: str) -> bool:
        llama = self.shape.family is TrunkFamily.LLAMA
        return llama and re.search(r"\.[qk]_proj\.weight$", name) is not None

    def _rows(self, tensor: StoredTensor) -> Any:
        try:
            if tensor.kind not in self._sizes:
                raise ValueError(f"a tensor has the unknown type {tensor.kind}")
            return self._header.rows(tensor, *self._sizes[tensor.kind])
        except ValueError as error:
            raise self._not_whole(error) from error

    def _not_whole(self, error: Exception) -> TrunkRefused:
        return TrunkRefused(f"{self.where} is not a whole GGUF file: {error}.\nTake it again.")

    def tokenizer(self) -> TrunkTokenizer | None:
        if "tokenizer.ggml.model" not in self.fields:
            return None
        return tokenizer_from_gguf(self.fields, self.where)


def _beside(file: object) -> bool:
    return isinstance(file, str) and Path(file).name == file


def expected_tensors(shape: TrunkShape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor of the family, by Hugging Face name, with its shape."""
    query, kv = shape.query_heads * shape.head_width, shape.kv_heads * shape.head_width
    yield "model.embed_tokens.weight", (shape.vocabulary, shape.width)
    for layer in range(shape.layers):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (shape.width,)
        yield at + "post_attention_layernorm.weight", (shape.width,)
        for name, outputs in (("q", query), ("k", kv), ("v", kv)):
            yield at + f"self_attn.{name}_proj.weight", (outputs, shape.width)
            if shape.qkv_bias:
                yield at + f"self_attn.{name}_proj.bias", (outputs,)
            if shape.qk_norm and name != "v":
                yield at + f"self_attn.{name}_norm.weight", (shape.head_width,)
        yield at + "self_attn.o_proj.weight", (shape.width, query)
        yield at + "mlp.gate_proj.weight", (shape.feed_forward, shape.width)
        yield at + "mlp.up_proj.weight", (shape.feed_forward, shape.width)
        yield at + "mlp.down_proj.weight", (shape.width, shape.feed_forward)
    yield "model.norm.weight", (shape.width,)
    if not shape.tied_head:
        yield "lm_head.weight", (shape.vocabulary, shape.width)


def _check_complete(shape: TrunkShape, stored: dict[str, tuple[int, ...]], where: str) -> None:
    expected = dict(expected_tensors(shape))
    # A tied head or a buffer of angles may be stored again; both follow from what is read.
    ignored = {n for n in stored if n.endswith("rotary_emb.inv_freq")}
    ignored |= {"lm_head.weight"} if shape.tied_head else set()
    problems = [f"  {name}: missing" for name in expected if name not in stored]
    problems += [
        f"  {name}: stored {stored[name]}, the configuration says {size}"
        for name, size in expected.items()
        if name in stored and stored[name] != size
    ]
    problems += [
        f"  {name}: not a tensor of the {shape.family} family"
        for name in stored
        if name not in expected and name not in ignored
    ]
    if problems:
        more = [f"  … and {len(problems) - 8} more"] if len(problems) > 8 else []
        raise TrunkRefused(
            "\n".join(
                [
                    f"{where} does not hold the decoder its configuration describes.",
                    *problems[:8],
                    *more,
                ]
            )
        )


_GGUF_LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_GGUF_TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


def _hf_name(name: str) -> str:
    """GGUF name → Hugging Face name; an unknown one stays, and is then refused by name."""
    layer = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
    if layer and layer[2] in _GGUF_LAYER:
        return f"model.layers.{layer[1]}.{_GGUF_LAYER[layer[2]]}.{layer[3]}"
    return _GGUF_TOP.get(name, name)


def _half_split(weight: Tensor, head_width: int) -> Tensor:
    """Undo llama.cpp's rotary layout: neighbouring rows (0, 1) are a pair → (0, X/2) are."""
    pairs = weight.unflatten(0, (-1, head_width // 2, 2))
    return pairs.transpose(1, 2).reshape(weight.shape)


def _from_hub(repository: str, revision: str | None) -> Path:
    if not revision or not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise UsageError(
            f"{repository} is a hub id, and its revision is {revision!r}.\n"
            "Pin the full commit (--revision or trunk.revision, 40 hex digits), so that the trunk "
            "is the same tomorrow."
        )
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise UsageError(
            "Taking a trunk from the hub needs an extra: pip install 'pdt[hub]'."
        ) from error
    silent = silence_of_hub(repository, revision)
    try:
        kept = snapshot_download(
            repository,
            revision=revision,
            allow_patterns=["*.json", "*.safetensors", "*.txt", "*.jinja"],
            local_files_only=silent is not None,
        )
        return Path(kept)
    except Exception as error:
        # Network, authentication, disk: the hub's own words say which.
        raise TrunkRefused(
            f"{repository} at {revision} could not be taken from the hub: {silent or error}\n"
            "Without a network, give a local directory or GGUF file (--set trunk.source=PATH)."
        ) from error
