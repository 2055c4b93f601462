"""Read the configuration and say all that is wrong with it, a line each."""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from reprlib import Repr
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from web2gpt.config.base import Settings
from web2gpt.config.root import Config
from web2gpt.errors import ConfigError

S = TypeVar("S", bound=Settings)
SHORT = Repr()
SHORT.maxstring = SHORT.maxother = 80


def load_config(values: Mapping[str, Any]) -> Config:
    """Validate the whole configuration.

    Raises ``ConfigError`` with one line for each fault: key, value, what is allowed, and for an
    unknown key the nearest valid one.
    """
    return parse_settings(Config, as_json(values))


def as_json(values: Any) -> str:
    """What YAML holds, as JSON. Raises ``ConfigError`` if it is more than a tree of settings."""
    try:
        return json.dumps(values, default=str)
    except (TypeError, ValueError) as error:  # keys such as dates; an anchor inside itself
        raise ConfigError(
            f"the configuration is no plain tree of settings ({error}); write it as one."
        ) from error


def read_config(path: Path) -> Config:
    """Validate the configuration in a YAML file."""
    return load_config(read_yaml(path))


def read_yaml(path: Path) -> dict[Any, Any]:
    """The settings in a YAML file as they stand, not validated; no key may stand twice."""
    try:
        values = yaml.load(path.read_text(encoding="utf-8-sig"), _Loader)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file; the configuration is one YAML file.") from error
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}); name a YAML file."
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text; the configuration is a YAML file.") from error
    except yaml.YAMLError as error:
        found = " ".join(str(error).split())
        raise ConfigError(f"{path}: not YAML ({found}); mend it there.") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: no settings in it; write a mapping such as 'model: ...'.")
    return values


def parse_settings(kind: type[S], text: str) -> S:
    """Validate one section given as JSON, as the workflow's rules hand it to a stage."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        details = error.errors()
        lines = dict.fromkeys(_explain(kind, one) for one in details if not _follows(one, details))
        raise ConfigError("\n".join(lines)) from None


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, but a key that stands twice is a fault; else the last one would win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                line = key.start_mark.line + 1
                if first := lines.get(key.value):
                    raise yaml.YAMLError(
                        f"the key {key.value!r} stands twice, in lines {first} and {line}"
                    )
                lines[key.value] = line
        return super().construct_mapping(node, deep)


def dump_config(config: Config) -> str:
    """The resolved configuration as YAML, every default written out."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _explain(kind: type[BaseModel], detail: ErrorDetails) -> str:
    key = ".".join(str(part) for part in detail["loc"]).encode("unicode_escape").decode()
    message = detail["msg"].removeprefix("Value error, ")
    match detail["type"]:
        case "extra_forbidden":
            return f"{key}: no such setting{_nearest(kind, detail)}"
        case "missing":
            return f"{key}: missing; it has no default"
        case "value_error":
            return f"{key}: {message}" if key else message
        case _:
            value = SHORT.repr(detail["input"])
            name = key or "settings"
            return f"{name}: {value} is not allowed: {message[0].lower()}{message[1:]}"


def _follows(detail: ErrorDetails, details: list[ErrorDetails]) -> bool:
    """Whether a list counts as too short only because its items are wrong, which is told."""
    where = detail["loc"]
    inside = any(one["loc"][:-1][: len(where)] == where for one in details)
    return detail["type"] == "too_short" and inside


def _nearest(kind: type[BaseModel], detail: ErrorDetails) -> str:
    *parents, name = detail["loc"]
    names = _names_at(kind, parents)
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.4)
    return f"; did you mean {close[0]}?" if close else f"; allowed here: {', '.join(names)}"


def _names_at(kind: type[BaseModel], path: list[int | str]) -> list[str]:
    """The valid names in the section that ``path`` leads to."""
    for part in path:
        if isinstance(part, int):
            continue
        annotation = kind.model_fields[part].annotation
        inner = getattr(annotation, "__args__", (annotation,))[0]
        kind = inner if isinstance(inner, type) and issubclass(inner, BaseModel) else kind
    return list(kind.model_fields)
