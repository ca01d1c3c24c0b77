"""From a design to configurations: the baseline, and one variant for each other level of each axis.

Paper: Appendix A.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pdt.config import PdtConfig, validate_config
from pdt.config.presets import merge, preset_tree
from pdt.errors import UsageError
from pdt.screen.design import Axis, Design, Level

BASELINE = "baseline"
Tree = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    """One configuration of the screen."""

    name: str
    axis: str | None
    """None for the baseline."""
    level: str
    config: PdtConfig

    def difference(self, baseline: PdtConfig) -> dict[str, tuple[Any, Any]]:
        """Every key that differs, with the baseline's value and this one's."""
        ours, theirs = (leaves(c.model_dump(mode="json")) for c in (baseline, self.config))
        return {
            key: (ours.get(key), theirs.get(key))
            for key in sorted(ours | theirs)
            if ours.get(key) != theirs.get(key)
        }


def variants_of(design: Design, baseline: PdtConfig) -> list[Variant]:
    """The baseline first, then axis by axis; a level that changes nothing is refused."""
    axes = {axis.name: axis for axis in design.axes}
    found = [Variant(BASELINE, None, BASELINE, baseline)]
    if not design.interactions:
        found += [_variant(axis, level, baseline) for axis in design.axes for level in _of(axis)]
    for one in design.interactions:
        config = baseline
        for name, level in one.levels.items():
            if name not in axes:
                raise UsageError(
                    f"The interaction {one.name!r} names the axis {name!r}, which the design lacks."
                )
            config = _changed(axes[name], level, config, whole=baseline)
        level_text = ", ".join(f"{name} {shown(level)}" for name, level in one.levels.items())
        found.append(Variant(_slug(one.name), one.name, level_text, config))
    for variant in found[1:]:
        if not variant.difference(baseline):
            raise UsageError(
                f"{variant.axis} {variant.level} is the baseline's own value.\n"
                "A level of an axis is another one: change the design, or the --set."
            )
    names = [variant.name for variant in found]
    if len(set(names)) < len(names):
        raise UsageError("Two variants of the design have one name; give each level once.")
    return found


def seeded(config: PdtConfig, seed: int) -> PdtConfig:
    """The configuration of one run."""
    return _valid(merge(_tree(config), {"training": {"seed": seed}}), f"seed {seed}")


def shown(level: Level | None) -> str:
    """A level in words."""
    if isinstance(level, Mapping):
        return " ".join(str(value) for value in level.values() if value is not None)
    return f"{level:g}" if isinstance(level, float) else str(level)


def leaves(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flat keys; lists are values."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= leaves(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _of(axis: Axis) -> Sequence[Level]:
    return axis.levels if axis.preset is None else (axis.preset,)


def _variant(axis: Axis, level: Level, baseline: PdtConfig) -> Variant:
    config = _changed(axis, level, baseline, whole=baseline)
    return Variant(_slug(f"{axis.name} {shown(level)}"), axis.name, shown(level), config)


def _changed(axis: Axis, level: Level, config: PdtConfig, *, whole: PdtConfig) -> PdtConfig:
    tree = _tree(config)
    if axis.preset is not None:
        over = _preset_difference(axis.preset)
    elif axis.key == "upper_layers":
        over = {"lanes": {"fork_layer": whole.trunk.shape.layers - int(level)}}  # type: ignore[arg-type]
    elif axis.key == "learning_rate":
        over = _rates(config, float(level))  # type: ignore[arg-type]
    else:
        assert axis.key is not None
        leaf: Any = level
        for key in reversed(axis.key.split(".")):
            leaf = {key: leaf}
        over = leaf
    return _valid(merge(tree, over), f"{axis.name} {shown(level)}")


def _preset_difference(name: str) -> Tree:
    """What a preset says differently from canonical: its trunk and where it forks."""
    given, base = preset_tree(name), preset_tree("canonical")
    return {key: given[key] for key in ("trunk", "lanes") if given[key] != base[key]}


def _rates(config: PdtConfig, rate: float) -> Tree:
    """The optimizer's rate; where stages have rates of their own, all move in proportion."""
    training = config.training
    ratio = rate / training.optimizer.learning_rate
    stages = [stage.model_dump(mode="json") for stage in training.stages]
    for stage in stages:
        if stage["learning_rate"] is not None:
            stage["learning_rate"] = float(f"{stage['learning_rate'] * ratio:.6g}")
    return {"training": {"optimizer": {"learning_rate": rate}, "stages": stages}}


def _tree(config: PdtConfig) -> Tree:
    return config.model_dump(mode="json")


def _valid(tree: Tree, where: str) -> PdtConfig:
    return validate_config(tree, where=where)


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text).strip("-.")
