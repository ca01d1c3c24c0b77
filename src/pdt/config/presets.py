"""Presets and YAML files as plain mappings, one over the other.

Every number of the paper stands once, in `presets/canonical.yaml`. A preset is a YAML file that may
say `extends: OTHER` and list differences.
"""

import difflib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from pdt.errors import ConfigError, UsageError
from pdt.parse import NotParsed, parse_yaml, shown


def preset_names() -> list[str]:
    """The presets in the package, canonical first."""
    folder = resources.files("pdt") / "presets"
    names = sorted(
        p.name.removesuffix(".yaml") for p in folder.iterdir() if p.name.endswith(".yaml")
    )
    return sorted(names, key=lambda name: name != "canonical")


def preset_tree(name: str) -> dict[str, Any]:
    known = preset_names()
    if not isinstance(name, str):
        raise UsageError(f"extends: {shown(name)} is no preset.\nPresets: {', '.join(known)}.")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise UsageError(f"There is no preset {name!r}.{hint}\nPresets: {', '.join(known)}.")
    text = (resources.files("pdt") / "presets" / f"{name}.yaml").read_text(encoding="utf-8")
    tree = yaml.safe_load(text)
    base = tree.pop("extends", None)
    return merge(preset_tree(base), tree) if base else tree


def canonical_part(*path: str) -> dict[str, Any]:
    """A part that a configuration saved before the part existed does not name."""
    tree: Any = preset_tree("canonical")
    for key in path:
        tree = tree[key]
    return tree


def read_yaml(path: Path) -> tuple[str | None, dict[str, Any]]:
    """The preset that a file extends, and what it says itself."""
    try:
        tree = parse_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist. Give --config a YAML file.") from error
    except (OSError, UnicodeDecodeError, NotParsed) as error:
        raise ConfigError(f"{path} cannot be read as YAML: {error}.\nCorrect it.") from error
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} holds {type(tree).__name__}, expected a mapping of sections.")
    return tree.pop("extends", None), tree


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on top of `base`, section by section."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if both else value  # type: ignore[arg-type]
    return merged
