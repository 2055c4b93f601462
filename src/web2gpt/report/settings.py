"""The configuration of a run: its folders, and what in it is not the default."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson
import yaml
from pydantic import ValidationError

from web2gpt.config.base import Settings
from web2gpt.config.load import as_json, parse_settings, read_yaml
from web2gpt.config.root import Config
from web2gpt.config.sources import Data, Run
from web2gpt.errors import ConfigError
from web2gpt.report.files import flatten

S = TypeVar("S", bound=Settings)


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


def folders_named(file: Path) -> tuple[Path, Path]:
    """Where the corpus and the run lie that a configuration names, or an overlay, which need not be
    a whole one. Raises ``ConfigError`` if it cannot be read."""
    values = read_yaml(file)
    corpus, training = _section(Data, file, values, "data"), _section(Run, file, values, "run")
    return Path("results/data", corpus.name), Path("results/runs", training.name)


def _section(kind: type[S], file: Path, values: Mapping[str, Any], name: str) -> S:
    try:
        return parse_settings(kind, as_json(values.get(name) or {}))
    except ConfigError as error:
        raise ConfigError(f"{file}: {name}.{error}") from None
