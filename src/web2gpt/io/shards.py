"""JSON lines, compressed or not: the form of documents between stages, and of users' own dumps.

What we write is zstd, level 3, one frame, one thread, with a checksum: the same records give the
same bytes. What we read may be .jsonl, .json or .txt, plain or .gz, .bz2, .xz, .zst. A line that
is not a JSON object costs that line only.
"""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson
import zstandard

from web2gpt.errors import InputError
from web2gpt.io.atomic import publish, temporary_name
from web2gpt.io.compression import BROKEN, open_compressed

LEVEL = 3
MAX_LINE = 64 << 20  # bytes of one line; a longer one is a bad record
BROKEN_COMPRESSION = "broken_compression"
Document = dict[str, Any]


@dataclass(frozen=True)
class BadLine:
    """A record that could not be read: where it stands and why."""

    file: str
    line: int
    reason: str


def read_lines(path: Path) -> Iterator[tuple[int, bytes | BadLine]]:
    """Number and content of each line, without its end and without a byte order mark; an over-long
    line or a break-off of the compressed stream comes as a ``BadLine``.

    Raises ``InputError`` if the file cannot be opened.
    """
    number = 0
    try:
        file = open_compressed(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be opened ({error.strerror}).") from error
    with file:
        while True:
            number += 1
            try:
                line = file.readline(MAX_LINE + 1)
                if len(line) > MAX_LINE and not line.endswith(b"\n"):
                    while line and not line.endswith(b"\n"):
                        line = file.readline(MAX_LINE)
                    yield number, BadLine(str(path), number, "line_too_long")
                    continue
            except BROKEN:
                yield number, BadLine(str(path), number, BROKEN_COMPRESSION)
                return
            if not line:
                return
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            yield number, line.rstrip(b"\r\n")


def read_jsonl(path: Path) -> Iterator[Document | BadLine]:
    """The records of a JSON-lines file; blank lines are passed over."""
    for number, line in read_lines(path):
        if isinstance(line, BadLine):
            yield line
        elif line.strip():
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                yield BadLine(str(path), number, "not_json")
                continue
            is_object = isinstance(record, dict)
            yield record if is_object else BadLine(str(path), number, "not_an_object")


class JsonlWriter:
    """Write records to a .jsonl.zst that appears under its name only if the block ends well."""

    def __init__(self, path: Path):
        self.path = path
        self.count = 0
        self.bytes = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._temporary = temporary_name(path)
        self._file = self._temporary.open("wb")
        compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        self._stream = compressor.stream_writer(self._file, closefd=False)

    def write(self, record: Document) -> None:
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        self._stream.write(line)
        self.count += 1
        self.bytes += len(line)

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """Write records that are lines of JSON already, with their ends."""
        content = b"".join(lines)
        self._stream.write(content)
        self.count += len(lines)
        self.bytes += len(content)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        try:
            with self._file:
                if kind is None:
                    self._stream.flush(zstandard.FLUSH_FRAME)
            if kind is None:
                publish(self._temporary, self.path)
        finally:
            self._temporary.unlink(missing_ok=True)
