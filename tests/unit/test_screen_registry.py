"""Which screens judge: the chosen one, and those that were given what they need."""

from pathlib import Path

import pytest

from pdt.errors import UsageError
from pdt.evaluation.screens.registry import SCREENS, open_screens
from pdt.evaluation.screens.screen import ScreenChoice


def test_every_screen_has_a_name_of_its_own() -> None:
    assert [kind.name for kind in SCREENS] == ["exact", "prose", "nli"]


def test_the_exact_screen_judges_alone_unless_another_is_asked_for() -> None:
    assert [screen.name for screen in open_screens(ScreenChoice())] == ["exact"]


def test_a_screen_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(UsageError, match=r"no screen 'guess'\. Give exact or prose or nli"):
        open_screens(ScreenChoice("guess"))


@pytest.mark.parametrize(
    "choice",
    [
        ScreenChoice("nli"),
        ScreenChoice(encoder="canonical"),
        ScreenChoice(calibration=Path("threshold.json")),
    ],
)
def test_the_nli_screen_needs_its_model_and_its_threshold(choice: ScreenChoice) -> None:
    with pytest.raises(UsageError, match="needs both --nli and --calibration"):
        open_screens(choice)
