"""Trunks that were expanded from a GGUF file, kept in the user's cache under their own digest.

Expanding a quantized file takes seconds at every start. What is kept is checked when it is read:
its digest is the one that the model is bound to, and another is not used.
"""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from pdt.model.kernels.build import cache_directory
from pdt.model.pdt import ParallelDecoder
from pdt.model.pieces import write_tensors
from pdt.model.trunk import TrunkIdentity, tensors_digest
from pdt.provenance import atomic_path

MOST_KEPT = 3
"""Older ones go: a trunk of 135 M parameters takes 400 MB."""


def keep_trunk(model: ParallelDecoder) -> None:
    """Keep the trunk of a model that was split from a GGUF file; no space for it is no error."""
    identity = model.trunk_identity
    if identity is None or not _expanded(identity) or _place(identity.digest).exists():
        return
    place = _place(identity.digest)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(place) as partial:
            write_tensors(partial, {name: value.data for name, value in model.trunk.shared()})
        kept = sorted(place.parent.glob("*.safetensors"), key=lambda file: file.stat().st_mtime)
        for old in kept[:-MOST_KEPT]:
            old.unlink(missing_ok=True)
    except OSError:
        return


def read_kept(identity: TrunkIdentity) -> dict[str, Tensor] | None:
    """The trunk's tensors as they were kept, or None; what is damaged is thrown away."""
    place = _place(identity.digest)
    if not _expanded(identity) or not place.is_file():
        return None
    try:
        tensors = load_file(place)
        if tensors_digest(sorted(tensors.items())) == identity.digest:
            return tensors
    except (OSError, SafetensorError):
        pass
    place.unlink(missing_ok=True)
    return None


def _expanded(identity: TrunkIdentity) -> bool:
    return identity.source is not None and identity.source.endswith(".gguf")


def _place(digest: str) -> Path:
    return cache_directory() / "trunks" / f"{Path(digest).name}.safetensors"
