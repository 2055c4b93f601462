"""Read lists of URLs, one a line, and Reddit's submission dumps (``RS_*``, JSON lines).

A source is a name with files and folders; a folder stands for all its files, in the order of
their names. Files may be plain or .gz, .bz2, .xz, .zst. Everything is read as a stream, in chunks
of lines that depend on the file alone, and can be judged by any process.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from web2gpt.errors import ConfigError, InputError
from web2gpt.io.shards import BadLine, read_lines
from web2gpt.urls.rules import Rejection

CHUNK = 1 << 20  # bytes of a chunk, about
WHITE = " \t\r\n\x0b\x0c"  # what may stand around a URL


@dataclass(frozen=True)
class ListFile:
    """A file of URLs and the source it belongs to."""

    source: str
    path: Path

    @property
    def is_dump(self) -> bool:
        return self.path.name.startswith("RS_")


class Chunk(NamedTuple):
    """Lines of a file that follow one another, the first of them number ``first``."""

    first: int
    lines: list[bytes | BadLine]


Line = tuple[int, str, Rejection | BadLine | None]
"""A line's number, the URL as it was given, and why there is none that can be judged, if so.

A plain tuple, as there are millions of them."""


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


def read_chunks(path: Path) -> Iterator[Chunk]:
    """All lines of a file. Raises ``InputError`` if it cannot be opened."""
    first, lines, size = 1, list[bytes | BadLine](), 0
    for number, line in read_lines(path):
        lines.append(line)
        size += 1 if isinstance(line, BadLine) else len(line) + 1
        if size >= CHUNK:
            yield Chunk(first, lines)
            first, lines, size = number + 1, [], 0
    if lines:
        yield Chunk(first, lines)


def lines_of(chunk: Chunk, file: ListFile, min_score: int) -> Iterator[Line]:
    """The URLs of a chunk; empty lines are passed over."""
    numbered = enumerate(chunk.lines, chunk.first)
    if file.is_dump:
        for number, line in numbered:
            if isinstance(line, BadLine):
                yield number, "", line
            elif stripped := line.strip():
                yield _submission(file, number, stripped, min_score)
        return
    try:
        texts = b"\n".join(chunk.lines).decode().split("\n")  # type: ignore[arg-type]  # caught below
    except (TypeError, UnicodeDecodeError):
        yield from filter(None, (_plain(number, line) for number, line in numbered))
        return
    for number, text in enumerate(texts, chunk.first):
        if given := text.strip(WHITE):
            yield number, given, None


def _plain(number: int, line: bytes | BadLine) -> Line | None:
    """A line of a chunk of which not all are text."""
    if isinstance(line, BadLine):
        return number, "", line
    try:
        given = line.decode().strip(WHITE)
    except UnicodeDecodeError:
        text = line.decode(errors="backslashreplace").strip(WHITE)
        return number, text, Rejection("malformed")
    return (number, given, None) if given else None


def _submission(file: ListFile, number: int, line: bytes, min_score: int) -> Line:
    """The URL that a submission links to; the dumps have ampersands as HTML does."""
    try:
        record: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return number, "", BadLine(str(file.path), number, "not_json")
    if not isinstance(record, dict) or not isinstance(record.get("url"), str):
        return number, "", BadLine(str(file.path), number, "no_url")
    given = record["url"].replace("&amp;", "&")
    score = record.get("score")
    if record.get("is_self"):
        return number, given, Rejection("self_post")
    if record.get("over_18"):
        return number, given, Rejection("over_18")
    if not isinstance(score, int) or score < min_score:
        figure = score if isinstance(score, int) else None
        return number, given, Rejection("low_score", figure)
    return number, given, None
