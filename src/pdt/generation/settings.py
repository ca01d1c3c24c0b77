"""How a generation chooses its tokens and when its lanes stop."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError, model_validator

from pdt.config import Count, Strict, parse_override
from pdt.errors import UsageError
from pdt.parse import shown

Probability = Annotated[float, Field(ge=0, le=1)]


class SettingsRefused(UsageError, ValueError):
    """Settings that cannot be; a ValueError too, so that a trace that holds them says so itself."""


class GenerationSettings(Strict):
    """The same for every lane; each lane draws from its own random stream."""

    max_tokens: Count = 1000
    """New tokens a lane may write, its end-of-sequence token included (§7.2: 1,000)."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 takes the most likely token."""
    top_k: Count | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    min_p: Probability = 0.0
    """Keep tokens at least this fraction as likely as the most likely one."""
    repetition_penalty: Annotated[float, Field(gt=0)] = 1.0
    """Divides the score of what the lane itself has written."""
    stop: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Strings that end a lane; they are not part of its text."""
    stop_at_eos: bool = True
    quote: bool = False
    """A lane may write whole sentences of the source alone, each at most once, a paragraph each.
    The model chooses which, in what order, and when to end."""
    drafts: Annotated[int, Field(ge=0, le=64)] = 0
    """Most tokens a lane drafts a round from its prompt and own text, fewer where they do not pay;
    0 drafts nothing. The text is the same either way, its rounds are fewer."""
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] = 0

    @model_validator(mode="after")
    def _ends(self) -> "GenerationSettings":
        if self.quote and not self.stop_at_eos:
            raise ValueError("quote needs stop_at_eos: once all is told a lane can only end")
        return self

    if not TYPE_CHECKING:  # whoever checks types sees the fields

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise SettingsRefused(_explained(error)) from error


def settings_from(overrides: Sequence[str], **given: Any) -> GenerationSettings:
    """Settings from `key=value` texts and named values; None leaves the default."""
    tree: dict[str, Any] = {}
    for text in overrides:
        tree |= parse_override(text)
    named = {name: value for name, value in given.items() if value is not None}
    return GenerationSettings(**(tree | named))


def as_settings(given: GenerationSettings | None, values: Mapping[str, Any]) -> GenerationSettings:
    """Settings with some values on top, as in `max_tokens=64`; None is the defaults."""
    if given is not None and not isinstance(given, GenerationSettings):
        raise UsageError(
            f"The settings are {type(given).__name__}, expected pdt.GenerationSettings.\n"
            "Give pdt.GenerationSettings(max_tokens=64), or max_tokens=64 itself."
        )
    return GenerationSettings(**{**({} if given is None else given.model_dump()), **values})


def _explained(error: ValidationError) -> str:
    lines = [
        f"  {'.'.join(map(str, p['loc']))}: {p['msg']} (value {shown(p['input'])})"
        for p in error.errors()
    ]
    known = ", ".join(GenerationSettings.model_fields)
    return "\n".join(["These generation settings cannot be:", *lines, f"Known settings: {known}."])
