"""Reading what a run left: whatever is missing or damaged is noted, and costs its part only."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml

from web2gpt.errors import InputError
from web2gpt.io.atomic import read_json
from web2gpt.io.shards import BadLine, read_jsonl

UNREADABLE = (InputError, OSError, ValueError, LookupError, TypeError, AttributeError,
              yaml.YAMLError)  # fmt: skip
T = TypeVar("T")


@dataclass
class Missing:
    """The names of files that are not there, or cannot be read, in the order they were found."""

    names: list[str] = field(default_factory=list)

    def text(self, path: Path, name: str) -> str:
        """A text file; empty if there is none."""
        try:
            return path.read_text(errors="replace")
        except OSError:
            self.names.append(name)
            return ""

    def json(self, path: Path, name: str) -> Any:
        """A JSON file; None if there is none."""
        return self.reading(name, lambda: read_json(path))

    def lines(self, path: Path, name: str) -> Iterator[dict[str, Any]]:
        """The records of a JSON-lines file; none if there is none."""
        try:
            yield from good_lines(path)
        except InputError:
            self.names.append(name)

    def reading(self, name: str, read: Callable[[], T]) -> T | None:
        """What ``read`` gives; None, and noted under ``name``, if it cannot."""
        try:
            return read()
        except FileNotFoundError:
            self.names.append(name)
        except UNREADABLE:
            self.names.append(f"{name} (unreadable)")
        return None


def good_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a JSON-lines file, without those that cannot be read.

    Raises ``InputError`` if the file cannot be opened.
    """
    return (line for line in read_jsonl(path) if not isinstance(line, BadLine))


def flatten(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """A tree as rows of dotted key and value; lists of plain values stay whole."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from flatten(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for number, inner in enumerate(value):
            yield from flatten(inner, f"{key}.{number}" if key else str(number))
    else:
        yield key, value
