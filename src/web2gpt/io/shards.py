"""JSON lines, compressed or not: the form of documents between stages, and of users' own dumps.

What we write is zstd, level 3, one thread, with a checksum, in frames of whole lines that can be
copied into the corpus as they are: the same records give the same bytes. What we read may be
.jsonl, .json or .txt, plain or .gz, .bz2, .xz, .zst. A line that is not a JSON object costs that
line only.
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
FRAME_BYTES = 4 << 20  # of lines in one frame; the last line is whole
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
        raise InputError(
            f"{path}: cannot be opened ({error.strerror}); name another file."
        ) from error
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
            yield parse_line(line, path, number)


def read_shard(path: Path) -> Iterator[Document | BadLine]:
    """The records of a shard that a stage of ours wrote, as ``read_jsonl`` gives them.

    Raises ``InputError`` if the file is missing or breaks off: it can be made again.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file; run the stage that makes it first.")
    for record in read_jsonl(path):
        if isinstance(record, BadLine) and record.reason == BROKEN_COMPRESSION:
            raise InputError(f"{path}: broken at line {record.line}; delete it and run again.")
        yield record


def parse_line(line: bytes, path: Path, number: int) -> Document | BadLine:
    """The record that is line ``number`` of a file."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return BadLine(str(path), number, "not_json")
    return record if isinstance(record, dict) else BadLine(str(path), number, "not_an_object")


class JsonlWriter:
    """Write records to a .jsonl.zst that appears under its name only if the block ends well."""

    def __init__(self, path: Path):
        self.path = path
        self.count = 0
        self.bytes = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._temporary = temporary_name(path)
        self._file = self._temporary.open("wb")
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        self._frame = bytearray()

    def write(self, record: Document) -> None:
        self.write_lines((orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE),))

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """Write records that are lines of JSON already, with their ends."""
        for line in lines:
            self._frame += line
            self.bytes += len(line)
            if len(self._frame) >= FRAME_BYTES:
                self._end_frame()
        self.count += len(lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        try:
            with self._file:
                if kind is None and (self._frame or not self.count):
                    self._end_frame()
            if kind is None:
                publish(self._temporary, self.path)
        finally:
            self._temporary.unlink(missing_ok=True)

    def _end_frame(self) -> None:
        self._file.write(self._compressor.compress(self._frame))
        self._frame.clear()
