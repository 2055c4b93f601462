"""What all sections of the configuration share: frozen, nothing unknown, no silent conversions."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Settings(BaseModel):
    """A section of the configuration."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_default=True, allow_inf_nan=False
    )


def _number(value: object) -> object:
    """YAML 1.1 reads 1e-3 as text; take it for the number that was meant."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


Real = Annotated[float, BeforeValidator(_number)]
"""A floating-point setting that may be written 1e-3."""
