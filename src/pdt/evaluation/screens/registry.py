"""Every screen there is. A new one is a file in this room, and a line here."""

from pdt.errors import UsageError
from pdt.evaluation.screens.exact import ExactScreen
from pdt.evaluation.screens.nli import NliScreen
from pdt.evaluation.screens.prose import ProseScreen
from pdt.evaluation.screens.screen import Screen, ScreenChoice

SCREENS: tuple[type[Screen], ...] = (
    ExactScreen,
    ProseScreen,
    NliScreen,
)


def open_screens(choice: ScreenChoice) -> list[Screen]:
    """The chosen screen, and those asked for beside it."""
    if choice.name not in (names := [kind.name for kind in SCREENS]):
        raise UsageError(f"There is no screen {choice.name!r}. Give {' or '.join(names)}.")
    opened = (kind.opened(choice) for kind in SCREENS)
    return [screen for screen in opened if screen is not None]
