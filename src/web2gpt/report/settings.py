"""The configuration that a run left, and what in it is not the default."""

from dataclasses import dataclass
from typing import Any

import orjson
import yaml
from pydantic import ValidationError

from web2gpt.config.root import Config
from web2gpt.report.files import flatten


@dataclass(frozen=True)
class Change:
    """A setting that differs from its default."""

    key: str
    value: Any
    default: Any


def parse_config(text: str) -> Config | None:
    """The configuration; None if the text is no longer a valid one."""
    try:
        return Config.model_validate_json(orjson.dumps(yaml.safe_load(text)))
    except (ValidationError, TypeError, yaml.YAMLError):
        return None


def changes_of(text: str) -> tuple[Change, ...]:
    """The settings that differ from the schema's defaults; none of a text that is not valid."""
    config = parse_config(text)
    if config is None:
        return ()
    given = dict(flatten(config.model_dump(mode="json")))
    default = dict(flatten(Config.model_construct(input=config.input).model_dump(mode="json")))
    return tuple(
        Change(key, value, default.get(key))
        for key, value in given.items()
        if value != default.get(key)
    )
