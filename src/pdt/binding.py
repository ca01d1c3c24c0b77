"""What an output belongs to: the settings and inputs it was begun with, and nothing else after.

A directory that can be taken up again keeps them in a JSON file, written once. Whoever takes it up
is compared with that file, leaf by leaf.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdt.errors import BindingMismatch
from pdt.provenance import read_json_object, write_json

Tree = Mapping[str, Any]
_WIDEST = 60
_DIGEST = re.compile(r"[0-9a-f]{64}")


def bind(file: Path, given: Tree, what: str, remedy: str) -> None:
    """Write what a directory is begun with, or refuse to go on with something else."""
    if file.exists():
        refuse_other(read_json_object(file), given, what, remedy)
    else:
        write_json(file, given)


def refuse_other(
    bound: Tree,
    given: Tree,
    what: str,
    remedy: str,
    *,
    sides: tuple[str, str] = ("directory", "now"),
    free: tuple[str, ...] = (),
) -> None:
    """Refuse two trees that differ, with all differences side by side.

    `free` names the beginnings of keys, such as `training.watch.`, that may differ.
    """
    theirs, ours = (_leaves(json.loads(json.dumps(tree))) for tree in (bound, given))
    rows = [
        (key, _short(theirs.get(key)), _short(ours.get(key)))
        for key in sorted(theirs | ours)
        if theirs.get(key) != ours.get(key) and not key.startswith(free)
    ]
    if rows:
        raise BindingMismatch(what, rows, remedy, sides=sides)


def _leaves(tree: Tree, prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= (
            _leaves(value, f"{prefix}{key}.")
            if isinstance(value, Mapping)
            else {prefix + key: value}
        )
    return flat


def _short(value: Any) -> str:
    text = str(value)
    if _DIGEST.fullmatch(text):
        return text[:16]
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
