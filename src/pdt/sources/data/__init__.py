"""The published lists of the source rules, each with its version.

A verdict names the versions it was reached with.
"""

from functools import cache
from importlib import resources
from typing import Any

import yaml

LISTS = ("apparatus", "inline", "maintenance", "projects", "scholarly")


@cache
def published(name: str) -> dict[str, Any]:
    """One list, by name."""
    return yaml.safe_load((resources.files(__name__) / f"{name}.yaml").read_text(encoding="utf-8"))


def list_versions() -> dict[str, int]:
    return {name: published(name)["version"] for name in LISTS}
