"""Frozen encoders behind one small interface, and the fixed projection of plan targets.

Paper: §4.3.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pdt.config import PdtConfig
from pdt.errors import BindingMismatch, UsageError
from pdt.hub import silence_of_hub
from pdt.provenance import sha256_file
from pdt.teacher.answer import PlanNode
from pdt.teacher.facts import Fact
from pdt.terms import EncoderKind, NodeText


class Encoder(Protocol):
    """Texts to unit vectors, the same vectors every time."""

    width: int
    identity: str
    """Name and revision or digest: what a compiled corpus is bound to."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """One float32 row of length 1 per text."""
        ...


FUNCTION_WORDS = {
    "a", "an", "and", "at", "by", "for", "in", "is", "it", "its", "of", "on", "or", "the", "to",
    "with",
}  # fmt: skip
"""Most of a short outline, and nothing of what it is about."""


class HashedEncoder:
    """Signed hashed counts of content words and their pairs: the same on every machine."""

    def __init__(self, width: int, name: str) -> None:
        self.width = width
        self.identity = f"{name}/2 width {width}"
        self._place = lru_cache(maxsize=1 << 16)(self._hash)

    def _hash(self, gram: str) -> tuple[int, float]:
        digest = int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest(), "little")
        return (digest >> 1) % self.width, 1.0 if digest & 1 else -1.0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), self.width), dtype=np.float64)
        for row, text in zip(rows, texts, strict=True):
            found = re.findall(r"\w+", text.casefold())
            words = [word for word in found if word not in FUNCTION_WORDS] or found
            for gram in [*words, *map(" ".join, pairwise(words))]:
                place, sign = self._place(gram)
                row[place] += sign
        norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        return (rows / np.maximum(norms, 1e-12)).astype(np.float32)


class SentenceTransformerEncoder:
    """The canonical BGE encoder, pinned to a hub revision."""

    def __init__(self, name: str, revision: str | None) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise UsageError(
                f"The encoder {name} needs sentence-transformers.\n"
                "Run `pip install 'pdt[encoders]'`, or choose another records.encoder.kind."
            ) from error
        silent = None if os.path.isdir(name) else silence_of_hub(name, revision)
        try:
            self._model: Any = SentenceTransformer(
                name, revision=revision, device="cpu", local_files_only=silent is not None
            )
        except (OSError, ValueError) as error:
            raise UsageError(
                f"The encoder {name} at {revision} cannot be loaded: {silent or error}\n"
                "Give a directory that holds it with --set records.encoder.name=DIR, or choose "
                "records.encoder.kind=minilm or hashed."
            ) from error
        self._model.eval()
        self.identity = _identity(name, revision)
        self.width = int(self.encode(["width"]).shape[1])

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = self._model.encode(
            list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        return np.asarray(rows, dtype=np.float32)


def _identity(name: str, revision: str | None) -> str:
    """A hub id with its revision, or a local directory's name with the digest of its weights."""
    weights = Path(name) / "model.safetensors"
    if weights.is_file():
        return f"{Path(name).name} sha256 {sha256_file(weights)}"
    return f"{name}@{revision}"


class MiniLMEncoder:
    """all-MiniLM-L6-v2 from a local directory: mean over tokens of a small BERT, length 1.

    The directory holds config.json, tokenizer.json and model.safetensors (`make encoder`).
    """

    BATCH = 16

    def __init__(self, directory: Path, revision: str | None) -> None:
        weights = directory / "model.safetensors"
        if not weights.is_file():
            raise UsageError(
                f"{weights} does not exist.\nRun `make encoder`, or give the directory with "
                "--set records.encoder.name=DIR."
            )
        digest = sha256_file(weights)
        if revision is not None and digest != revision:
            raise BindingMismatch(
                f"{weights} is not the encoder that the config names.",
                [("sha256", digest, revision)],
                "Vectors of two encoders do not compare. Take the named weights (`make encoder`).",
                sides=("file", "config"),
            )
        try:
            import torch
            from tokenizers import Tokenizer
            from transformers import BertModel
        except ImportError as error:
            raise UsageError(
                "The encoder minilm needs transformers.\nRun `pip install 'pdt[encoders]'`."
            ) from error

        torch.set_num_threads(1)  # the bits of a sum depend on how it is divided
        self._torch = torch
        self._model: Any = BertModel.from_pretrained(directory).eval()
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._tokenizer.enable_truncation(self._model.config.max_position_embeddings)
        self._tokenizer.enable_padding()
        self.width = int(self._model.config.hidden_size)
        self.identity = _identity(str(directory), None)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Short texts go with short ones, so that little is spent on padding."""
        rows = np.zeros((len(texts), self.width), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(order), self.BATCH):
            chosen = order[start : start + self.BATCH]
            rows[chosen] = self._encode_batch([texts[index] for index in chosen])
        return rows

    def _encode_batch(self, texts: Sequence[str]) -> np.ndarray:
        torch = self._torch
        batch = self._tokenizer.encode_batch(list(texts))
        ids = torch.tensor([encoding.ids for encoding in batch])
        mask = torch.tensor([encoding.attention_mask for encoding in batch])
        with torch.inference_mode():
            states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
            weights = mask[:, :, None].to(states.dtype)
            mean = (states * weights).sum(1) / weights.sum(1)
            return torch.nn.functional.normalize(mean, dim=1).numpy()


def load_encoder(config: PdtConfig) -> Encoder:
    """The encoder a config names; one of another width is refused."""
    wanted = config.records.encoder
    encoder: Encoder
    if wanted.kind is EncoderKind.HASHED:
        encoder = HashedEncoder(config.heads.fact_width, wanted.name)
    elif wanted.kind is EncoderKind.MINILM:
        encoder = MiniLMEncoder(Path(wanted.name), wanted.revision)
    else:
        encoder = SentenceTransformerEncoder(wanted.name, wanted.revision)
    if encoder.width != config.heads.fact_width:
        raise UsageError(
            f"The encoder {encoder.identity} is {encoder.width} wide, heads.fact_width is "
            f"{config.heads.fact_width}.\nSet heads.fact_width={encoder.width}."
        )
    return encoder


class Projection:
    """The fixed Gaussian Johnson-Lindenstrauss map from the encoder's width to the planner's."""

    def __init__(self, seed: int, *, planner_width: int, encoder_width: int) -> None:
        # RandomState's stream is frozen by numpy's policy; Generator's may change with a release.
        normal = np.random.RandomState(seed).standard_normal((planner_width, encoder_width))
        self.weight_PE = (normal / np.sqrt(planner_width)).astype(np.float32)
        self.sha256 = hashlib.sha256(self.weight_PE.astype("<f4").tobytes()).hexdigest()

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Rows of encoder width to rows of planner width."""
        # einsum without optimize sums in one order, whatever the BLAS and its threads.
        return np.einsum("re,pe->rp", vectors, self.weight_PE, optimize=False).astype(np.float32)


def node_text(node: PlanNode, facts: dict[str, Fact], form: NodeText) -> str:
    """The textual form of a plan node: its objective, then what it owns and may mention."""
    if form is NodeText.OBJECTIVE:
        return node.objective
    parts = [node.objective]
    if node.owned_facts:
        parts.append("Owns: " + " ".join(facts[fact].statement for fact in node.owned_facts))
    if node.reference_facts:
        mentioned = " ".join(facts[fact].statement for fact in node.reference_facts)
        parts.append("May mention: " + mentioned)
    return " ".join(parts)
