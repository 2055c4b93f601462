"""Find the records of a WARC file in spite of damage.

Reads plain files, gzip of any packing (a member a record, or one for all), and what
``open_compressed`` takes. A record ends where its Content-Length says if another record or the end
follows there; otherwise the length is wrong and the record ends where the next one begins. After
damage that breaks decompression, reading goes on at the next gzip member that begins a record.
Nothing is passed over silently: whatever is no record comes as ``Damage``. Memory is bounded by the
largest block asked for.
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Literal

from fastwarc.warc import HeaderMap

from web2gpt.io.compression import BROKEN, open_compressed
from web2gpt.io.content_codings import GZIP

GZIP_MEMBER = b"\x1f\x8b\x08"
READ = 1 << 16  # bytes read, and bytes decompressed, at a time
MAX_HEAD = 1 << 16  # bytes of a record's head
LINE_ENDS = re.compile(rb"[\r\n]+")
HEAD_END = re.compile(rb"\r?\n\r?\n")
NEXT = re.compile(rb"\r\n\r\n(?=WARC/1\.[01]\r\n[A-Za-z-]{1,40}:)")
OVERLAP = 80  # bytes that NEXT can span
SEPARATOR = 4  # bytes between two records
VERSION = b"WARC/"


@dataclass(frozen=True)
class Block:
    """A record: its head and its content. ``offset`` is that of its gzip member where it begins
    one, else that in the decompressed file. ``content`` is None if it is over the limit."""

    offset: int
    headers: HeaderMap
    content: bytes | None


@dataclass(frozen=True)
class Damage:
    """Something that is no whole record, with its head if it has one."""

    offset: int
    headers: HeaderMap | None = None


def read_blocks(path: Path, limit: int) -> Iterator[Block | Damage]:
    """All records of a file, of whatever type, and all damage. Raises ``OSError`` if the file
    cannot be opened."""
    with path.open("rb") as file:
        is_gzip = file.read(len(GZIP_MEMBER)) == GZIP_MEMBER
        file.seek(0)
        pieces = _unpack(file) if is_gzip else _plain(path)
        stream = _Stream(pieces)
        while not stream.is_exhausted:
            yield from _read_run(stream, limit)
            stream.resume()


@dataclass(frozen=True)
class _Piece:
    """Decompressed bytes; ``member`` is the offset of the gzip member that they begin."""

    data: bytes
    member: int | None = None


@dataclass(frozen=True)
class _Gap:
    """Where decompression ended: in the member at ``offset``, by damage or for want of more
    bytes, or between two members."""

    offset: int
    kind: Literal["damaged", "cut_off", "between"]


def _plain(path: Path) -> Iterator[_Piece | _Gap]:
    with path.open("rb") if path.suffix == ".gz" else open_compressed(path) as file:
        position = 0
        try:
            while data := file.read(READ):
                yield _Piece(data)
                position += len(data)
        except BROKEN:
            yield _Gap(position, "damaged")


def _unpack(file: IO[bytes]) -> Iterator[_Piece | _Gap]:
    """The content of all gzip members, one after another."""
    start: int | None = 0
    while start is not None:
        member = start
        file.seek(start)
        unpacker, data, begins = zlib.decompressobj(GZIP), b"", True
        try:
            while not unpacker.eof:
                data = unpacker.unconsumed_tail or file.read(READ)
                if not data:
                    raise zlib.error("the file ends inside a member")
                piece = unpacker.decompress(data, READ)
                if piece:
                    yield _Piece(piece, member if begins else None)
                    begins = False
        except zlib.error:
            yield _Gap(member, "damaged" if data else "cut_off")
            start = _next_member(file, member + 1)
            continue
        start = file.tell() - len(unpacker.unused_data)
        if not _is_member(file, start):
            following = _next_member(file, start)
            if following is not None or not _is_padding(file, start):
                yield _Gap(start, "between")
            start = following


def _is_member(file: IO[bytes], position: int) -> bool:
    file.seek(position)
    return file.read(len(GZIP_MEMBER)) == GZIP_MEMBER


def _is_padding(file: IO[bytes], position: int) -> bool:
    """Whether nothing but zeros follows to the end, as tapes and some tools leave them."""
    file.seek(position)
    while data := file.read(READ):
        if data.strip(b"\0"):
            return False
    return True


def _next_member(file: IO[bytes], position: int) -> int | None:
    """Offset of the next gzip member that holds the beginning of a record."""
    tail = b""
    file.seek(position)
    while piece := file.read(READ):
        window = tail + piece
        base = file.tell() - len(window)
        at = window.find(GZIP_MEMBER)
        while at >= 0:
            if _begins_record(file, base + at):
                return base + at
            at = window.find(GZIP_MEMBER, at + 1)
        tail = window[-2:]
    return None


def _begins_record(file: IO[bytes], position: int) -> bool:
    """Whether a gzip member here starts with a WARC record; the file's place stays."""
    back = file.tell()
    file.seek(position)
    try:
        return zlib.decompressobj(GZIP).decompress(file.read(512), len(VERSION)) == VERSION
    except zlib.error:
        return False
    finally:
        file.seek(back)


class _Stream:
    """Decompressed bytes up to the next gap, buffered; ``resume`` goes on behind the gap."""

    def __init__(self, pieces: Iterator[_Piece | _Gap]):
        self._pieces = pieces
        self.buffer = bytearray()
        self.gap: _Gap | None = None
        self.is_exhausted = False
        self.last_member: int | None = None  # offset of the last member that gave any bytes
        self._position = 0  # of the buffer, in all that was decompressed
        self._members: dict[int, int] = {}  # from position to offset, for members in the buffer

    def offset(self) -> int:
        return self._members.get(self._position, self._position)

    @property
    def is_damaged(self) -> bool:
        """Whether the member that the buffer's last bytes are from was found to be damaged."""
        gap = self.gap
        return gap is not None and gap.kind == "damaged" and gap.offset == self.last_member

    def fill(self, size: int) -> bytearray:
        """The buffer, holding ``size`` bytes or all that there are before the next gap."""
        while len(self.buffer) < size and self.gap is None and not self.is_exhausted:
            piece = next(self._pieces, None)
            if piece is None:
                self.is_exhausted = True
            elif isinstance(piece, _Gap):
                self.gap = piece
            else:
                if piece.member is not None:
                    self.last_member = piece.member
                    self._members[self._position + len(self.buffer)] = piece.member
                self.buffer += piece.data
        return self.buffer

    def take(self, size: int) -> bytes:
        """The next bytes, out of the buffer."""
        content = bytes(self.buffer[:size])
        self.drop(size)
        return content

    def drop(self, size: int) -> None:
        size = min(size, len(self.buffer))
        del self.buffer[:size]
        self._position += size
        for position in [at for at in self._members if at < self._position]:
            del self._members[position]

    def drop_to_next(self, size: int | None = None) -> None:
        """Drop ``size`` bytes, or all up to the gap, but stop where a record begins."""
        while size != 0 and self.fill(READ):
            reach = len(self.buffer) if size is None else min(size, len(self.buffer))
            if found := NEXT.search(self.buffer, 0, min(len(self.buffer), reach + OVERLAP)):
                self.drop(found.end())
                return
            ends = len(self.buffer) < READ
            count = reach if ends else max(1, min(reach, len(self.buffer) - OVERLAP))
            self.drop(count)
            size = None if size is None else size - count

    def resume(self) -> None:
        self.drop(len(self.buffer))
        self.gap = None


def _read_run(stream: _Stream, limit: int) -> Iterator[Block | Damage]:
    """All records up to the next gap, and the damage of the gap unless a record has told it."""
    found: Block | Damage | None = None
    while _skip_line_ends(stream):
        found = _read_one(stream, limit)
        yield found
    gap = stream.gap
    if gap is None or (gap.kind == "cut_off" and gap.offset == stream.last_member and found):
        return  # a record that misses no byte of its own, or one that was told of
    if gap.kind == "between" or not isinstance(found, Damage):
        yield Damage(gap.offset)


def _skip_line_ends(stream: _Stream) -> bool:
    """Go to the next record; False at the end."""
    while stream.fill(len(VERSION)):
        ends = LINE_ENDS.match(stream.buffer)
        if ends is None:
            return True
        stream.drop(ends.end())
    return False


def _read_one(stream: _Stream, limit: int) -> Block | Damage:
    offset = stream.offset()
    end = HEAD_END.search(stream.fill(MAX_HEAD), 0, MAX_HEAD)
    if not stream.buffer.startswith(VERSION) or end is None:
        stream.drop_to_next()
        return Damage(offset)
    headers = HeaderMap()
    headers.parse(BytesIO(stream.take(end.end())), has_status_line=True)
    length = headers.get("Content-Length") or ""
    if not (length.isascii() and length.isdigit()):
        stream.drop_to_next()
        return Damage(offset, headers)
    if int(length) > limit:
        stream.drop_to_next(int(length))
        return Block(offset, headers, None)
    size = _size(stream, int(length), limit)
    if size is None:
        stream.drop_to_next()
        return Damage(offset, headers)
    return Block(offset, headers, stream.take(size))


def _size(stream: _Stream, declared: int, limit: int) -> int | None:
    """Bytes of the record at hand; None if it breaks off."""
    buffer = stream.fill(declared + SEPARATOR + len(VERSION))
    rest = bytes(buffer[declared : declared + SEPARATOR + len(VERSION)]).lstrip(b"\r\n")
    follows = rest[: len(VERSION)] == VERSION[: len(rest)]
    breaks_off = len(buffer) < declared or (not rest and stream.is_damaged)
    if follows and not breaks_off:
        return declared
    if found := NEXT.search(stream.fill(limit + OVERLAP)):
        return found.start()
    return None if breaks_off else declared
