"""Which extra brings a library that is not installed."""

import re
from importlib.metadata import PackageNotFoundError, requires

OWN = "dev"
"""What brings everything; nobody who only uses the package needs it."""


def extras_with(module: str) -> list[str]:
    """The extras of this package that install a module, by the package's own metadata."""
    wanted = module.partition(".")[0].replace("_", "-").lower()
    try:
        lines = requires("pdt") or []
    except PackageNotFoundError:
        return []
    found = (re.match(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"]", line) for line in lines)
    named = [(one[1].replace("_", "-").lower(), one[2]) for one in found if one]
    return [extra for name, extra in named if name == wanted and extra != OWN]
