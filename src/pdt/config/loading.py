"""From presets, files and `a.b=c` to the typed tree, or one error that says all that is wrong.

Unknown keys are refused with the nearest known one.
"""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from pdt.config.presets import merge, preset_tree, read_yaml
from pdt.config.tree import PdtConfig
from pdt.errors import ConfigError, UsageError, require_type
from pdt.parse import NotParsed, parse_yaml, shown


def load_config(
    preset: str = "canonical",
    *,
    file: str | Path | None = None,
    overrides: Sequence[str] = (),
    edits: Mapping[str, Any] | None = None,
    trunk: Mapping[str, Any] | None = None,
) -> PdtConfig:
    """A preset, a YAML file over it, then `a.b=c` overrides; validated once, whole.

    `edits` is what a given decoder says of itself: over presets, also that which the file extends,
    and under what the file itself says. `trunk` is over everything: the decoder that was given.
    """
    require_type(preset, str, "The preset", "a name such as nano")
    require_type(file, (str, Path, type(None)), "The configuration's file", "a path")
    require_type(overrides, (list, tuple), "What is overridden", 'a list such as ["lanes.count=2"]')
    base, own = (None, {}) if file is None else read_yaml(Path(file))
    tree = preset_tree(preset)
    if base is not None:
        tree = merge(tree, preset_tree(base))
    tree = merge(merge(tree, edits or {}), own)
    for text in overrides:
        tree = merge(tree, parse_override(text))
    tree = merge(tree, {"trunk": trunk or {}})
    return validate_config(tree, where=str(file) if file else f"preset {preset}")


def edit_config(config: PdtConfig, overrides: Sequence[str], *, where: str) -> PdtConfig:
    """A loaded config with `a.b=c` overrides on top, validated again."""
    tree: dict[str, Any] = config.model_dump(mode="json")
    for text in overrides:
        tree = merge(tree, parse_override(text))
    return validate_config(tree, where=where)


def validate_config(tree: Mapping[str, Any], *, where: str) -> PdtConfig:
    """The typed tree, or one error that lists every path, value and remedy."""
    try:
        return PdtConfig.model_validate(tree)
    except ValidationError as error:
        lines = [_explain(problem) for problem in error.errors()]
        raise ConfigError("\n".join([f"{where} is not a valid configuration.", *lines])) from error


def parse_override(text: str) -> dict[str, Any]:
    """`a.b=c` as a nested mapping; the value is read as YAML."""
    require_type(text, str, "An override", "a text such as lanes.count=2")
    path, equals, value = text.partition("=")
    if not equals or not all(path.split(".")):
        raise UsageError(
            f"--set {shown(text)} is not of the form a.b=value, for example --set lanes.count=2."
        )
    try:
        leaf: Any = parse_yaml(value)
    except NotParsed as error:
        raise UsageError(f"--set {shown(text)}: the value is not YAML ({error}).") from error
    for key in reversed(path.split(".")):
        leaf = {key: leaf}
    return leaf


def _explain(problem: Any) -> str:
    path = ".".join(str(part) for part in problem["loc"]) or "configuration"
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(
            str(problem["loc"][-1]), _known_keys(problem["loc"][:-1]), n=1
        )
        hint = (
            f"did you mean {near[0]}?"
            if near
            else "remove it, or see `pdt config show` for the keys"
        )
        return f"  {path}: unknown key (value {shown(problem['input'])}); {hint}"
    if problem["type"] == "missing":
        return f"  {path}: missing; `pdt config show --preset canonical` shows a value"
    message = problem["msg"].removeprefix("Value error, ")
    value = (
        ""
        if isinstance(problem["input"], dict | BaseModel)
        else f" (value {shown(problem['input'])})"
    )
    return f"  {path}: {message}{value}"


def _known_keys(path: Sequence[int | str]) -> list[str]:
    node: Any = PdtConfig
    for part in path:
        field = node.model_fields.get(str(part))
        if field is None or not isinstance(field.annotation, type):
            return []
        node = field.annotation
    return list(node.model_fields) if hasattr(node, "model_fields") else []
