"""Read lists of URLs, one a line, and Reddit's submission dumps (``RS_*``, JSON lines).

A source is a name with files and folders; a folder stands for all its files, in the order of
their names. Files may be plain or .gz, .bz2, .xz, .zst. Everything is read as a stream.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from web2gpt.errors import ConfigError, InputError
from web2gpt.io.shards import BadLine, read_lines
from web2gpt.urls.rules import Rejection


@dataclass(frozen=True)
class ListFile:
    """A file of URLs and the source it belongs to."""

    source: str
    path: Path


class Line(NamedTuple):
    """One URL as it was given, or why there is none."""

    number: int
    given: str
    fault: Rejection | BadLine | None = None


def parse_sources(arguments: Iterable[str]) -> list[ListFile]:
    """The files behind arguments NAME=PATH, in a fixed order; each file once a source."""
    found: dict[ListFile, None] = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not (name and equals and path):
            raise ConfigError(f"--source {argument}: write NAME=PATH, such as news=lists/news.txt")
        found |= dict.fromkeys(ListFile(name, file) for file in _files(Path(path)))
    return list(found)


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder of URLs; mend the source's paths.")
    if not path.is_dir():
        return [path]
    inside = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
    shown = [file for file in inside if not any(part[0] == "." for part in file.parts)]
    if not shown:
        raise InputError(f"{path}: an empty folder; put lists of URLs into it.")
    return [path / file for file in sorted(shown)]


def read_list(file: ListFile, min_score: int) -> Iterator[Line]:
    """The URLs of a file; empty lines are passed over."""
    is_dump = file.path.name.startswith("RS_")
    for number, line in read_lines(file.path):
        if isinstance(line, BadLine):
            yield Line(number, "", line)
        elif stripped := line.strip():
            if is_dump:
                yield _submission(file, number, stripped, min_score)
            else:
                yield _plain(number, stripped)


def _plain(number: int, line: bytes) -> Line:
    try:
        return Line(number, line.decode())
    except UnicodeDecodeError:
        return Line(number, line.decode(errors="backslashreplace"), Rejection("malformed"))


def _submission(file: ListFile, number: int, line: bytes, min_score: int) -> Line:
    """The URL that a submission links to; the dumps have ampersands as HTML does."""
    try:
        record: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return Line(number, "", BadLine(str(file.path), number, "not_json"))
    if not isinstance(record, dict) or not isinstance(record.get("url"), str):
        return Line(number, "", BadLine(str(file.path), number, "no_url"))
    given = record["url"].replace("&amp;", "&")
    score = record.get("score")
    if record.get("is_self"):
        return Line(number, given, Rejection("self_post"))
    if record.get("over_18"):
        return Line(number, given, Rejection("over_18"))
    if not isinstance(score, int) or score < min_score:
        return Line(
            number, given, Rejection("low_score", score if isinstance(score, int) else None)
        )
    return Line(number, given)
