"""What every section of the tree is made of: a frozen node, and numbers with a range."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1, le=10**18)]


Share = Annotated[float, Field(ge=0, le=1)]


Weight = Annotated[float, Field(ge=0)]


Seconds = Annotated[float, Field(gt=0)]


class Strict(BaseModel):
    """A frozen node of the tree; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def require_divides(name: str, value: int, by: str, divisor: int) -> None:
    if value % divisor:
        raise ValueError(f"{name} {value} is not a multiple of {by} {divisor}; change one of them")
