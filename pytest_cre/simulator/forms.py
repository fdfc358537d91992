"""What the forms of a scenario file are made of: strict models, durations, sizes, counts."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from pytest_cre.formats.duration import parse_duration
from pytest_cre.formats.quantity import parse_message_bytes


def _seconds(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return parse_duration(str(value))


def _bytes(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a size such as 8, 512M or 16G")
    return parse_message_bytes(value)


Seconds = Annotated[float, BeforeValidator(_seconds), Field(ge=0, allow_inf_nan=False)]
Bytes = Annotated[int, BeforeValidator(_bytes), Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=100_000)]


class Document(BaseModel):
    """Strict: unknown keys are mistakes; keys are written in camelCase."""

    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, populate_by_name=False, strict=False, frozen=True
    )


def given_keys(form: Document, parameters: tuple[str, ...]) -> set[str]:
    """Return those of the parameters that the file gives, as it spells them."""
    return {to_camel(name) for name in parameters if getattr(form, name) is not None}


def check_parameters(
    action: str, given: set[str], *, taken: frozenset[str], needed: frozenset[str]
) -> None:
    """Raise `ValueError` for a parameter that the action does not take, or lacks."""
    if given - taken:
        choices = ", ".join(sorted(taken)) or "none"
        raise ValueError(f"{action} does not take {min(given - taken)}; choices: {choices}")
    if missing := needed - given:
        raise ValueError(f"{action} needs {min(missing)}")
