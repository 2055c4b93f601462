"""WARC files: records written as single gzip members, responses read in spite of damage.

WARC/1.1 (ISO 28500:2017). Each record is a gzip member of its own, so records can be copied and
cut off whole. Response bodies are written as the payload after transfer and content coding, with
Content-Length to match; the fields that told of the codings are renamed ``X-Crawler-...``, the
convention of Common Crawl's archives, so that any reader gets the page without decoding again.
"""

import base64
import gzip
import hashlib
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from web2gpt.errors import InputError
from web2gpt.io.compression import open_compressed
from web2gpt.io.content import GZIP, ContentError, decode_content

Fields = Sequence[tuple[str, str]]
RECODED = ("content-length", "content-encoding", "transfer-encoding")
GZIP_MEMBER = b"\x1f\x8b\x08"
MAX_HEAD = 1 << 20  # bytes of HTTP head beside the payload
SEARCH = 1 << 16  # bytes looked at together for the next intact record


@dataclass(frozen=True)
class Response:
    """A response record. ``offset`` is that of the record in the (compressed) file."""

    file: str
    offset: int
    record_id: str | None
    url: str | None  # WARC-Target-URI
    date: str | None  # WARC-Date
    requested_url: str | None  # X-Requested-URL: the URL of the list that led here
    source: str | None  # X-Source
    truncated: str | None  # WARC-Truncated: the body is not whole
    status: int
    content_type: str | None  # media type, lower case, no parameters
    charset: str | None  # as the server gave it, if Python knows it
    headers: tuple[tuple[str, str], ...]
    payload: bytes  # after transfer and content coding


@dataclass(frozen=True)
class BadRecord:
    """A record that could not be read: where it stands and why."""

    file: str
    offset: int
    reason: str
    record_id: str | None = None
    url: str | None = None


def new_record_id() -> str:
    return f"<urn:uuid:{uuid.uuid4()}>"


def warc_date(moment: datetime) -> str:
    """``moment`` as WARC-Date has it, in UTC, to the microsecond."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def digest(content: bytes) -> str:
    """SHA-1 in base 32, the labelled form that WARC tools expect."""
    return (
        f"sha1:{base64.b32encode(hashlib.sha1(content, usedforsecurity=False).digest()).decode()}"
    )


def record(fields: Mapping[str, str], block: bytes, level: int) -> bytes:
    """One record as one gzip member; ``fields`` begin with WARC-Type and lack Content-Length."""
    named = {**fields, "WARC-Block-Digest": digest(block), "Content-Length": str(len(block))}
    head = "".join(f"{name}: {_one_line(value)}\r\n" for name, value in named.items())
    content = b"".join((b"WARC/1.1\r\n", head.encode(), b"\r\n", block, b"\r\n\r\n"))
    return gzip.compress(content, level, mtime=0)


def warcinfo(filename: str, about: Mapping[str, str], level: int) -> bytes:
    """The record an archive begins with; ``about`` has software, operator and so on."""
    fields = {
        "WARC-Type": "warcinfo",
        "WARC-Record-ID": new_record_id(),
        "WARC-Date": warc_date(datetime.now(UTC)),
        "WARC-Filename": filename,
        "Content-Type": "application/warc-fields",
    }
    block = "".join(f"{name}: {_one_line(value)}\r\n" for name, value in about.items())
    return record(fields, block.encode(), level)


def payload_headers(raw: Sequence[tuple[bytes, bytes]], size: int) -> bytes:
    """A response's header lines, told of a decoded body of ``size`` bytes."""
    lines = [
        b"%s%s: %s\r\n" % (b"X-Crawler-" if name.lower().decode("latin-1") in RECODED else b"",
                           name, value)
        for name, value in raw
    ]  # fmt: skip
    return b"".join((*lines, b"Content-Length: %d\r\n" % size))


def read_responses(path: Path, max_bytes: int) -> Iterator[Response | BadRecord]:
    """All HTTP responses of a WARC file, plain or compressed; other records are passed over.

    After a damaged record reading goes on at the next intact gzip member. A payload of more than
    ``max_bytes``, before or after decompression, comes as a ``BadRecord`` (``too_large``).
    Raises ``InputError`` if the file cannot be opened.
    """
    try:
        with path.open("rb") as probe:
            is_gzip = probe.read(3) == GZIP_MEMBER
        file = open_compressed(path) if path.suffix in (".xz", ".bz2") else path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be opened ({error.strerror}).") from error
    with file:
        start: int | None = 0
        damage: int | None = None  # offset after which damage was met that is still to be told
        while start is not None:
            last = None
            try:
                for found in _iterate(file, start):
                    if damage is not None:
                        yield BadRecord(str(path), damage, "broken_record")
                        damage = None
                    last = found.stream_pos
                    yield _response(found, str(path), last, max_bytes)
                break
            except (OSError, EOFError, ValueError):
                damage = last
                if last is None:
                    yield BadRecord(str(path), start, "broken_record")
                start = _next_member(file, (last or start) + 1) if is_gzip else None
        if damage is not None:
            yield BadRecord(str(path), damage, "broken_record")


def _iterate(file: IO[bytes], start: int) -> Iterator[WarcRecord]:
    file.seek(start)
    kinds = WarcRecordType.response
    yield from ArchiveIterator(file, record_types=kinds, parse_http=False)


def _response(found: WarcRecord, file: str, offset: int, max_bytes: int) -> Response | BadRecord:
    url, record_id = found.headers.get("WARC-Target-URI"), found.record_id
    try:
        http, payload = _parse_http(_block(found, max_bytes))
        coding = http.http_headers.get("Content-Encoding") or ""
        payload = decode_content(coding, payload, max_bytes)
    except ContentError as error:
        return BadRecord(file, offset, error.reason, record_id, url)
    return Response(
        file=file,
        offset=offset,
        record_id=record_id,
        url=url,
        date=found.headers.get("WARC-Date"),
        requested_url=found.headers.get("X-Requested-URL"),
        source=found.headers.get("X-Source"),
        truncated=found.headers.get("WARC-Truncated"),
        status=http.http_headers.status_code or 0,
        content_type=(http.http_content_type or "").strip().lower() or None,
        charset=http.http_charset,
        headers=tuple(http.http_headers.astuples()),
        payload=payload,
    )


def _block(found: WarcRecord, max_bytes: int) -> bytes:
    """The whole block of a record, head and payload. Raises ``ContentError``."""
    declared = found.content_length
    if declared > max_bytes + MAX_HEAD:
        raise ContentError("too_large")
    block = found.reader.read(declared)
    if len(block) < declared:
        raise ContentError("broken_record")
    return block


def _parse_http(block: bytes) -> tuple[WarcRecord, bytes]:
    """A record whose HTTP head is parsed, and its payload with the chunks joined.

    Archivers that join the chunks themselves may leave the field that tells of them, so a payload
    that is no row of chunks is taken as it is.
    """
    for decode in ("transfer", "none"):
        found = WarcRecord()
        found.is_http = True
        found.set_bytes_content(block)
        try:
            found.parse_http(auto_decode=decode)
            payload = found.reader.read(len(block))
        except OSError:
            continue
        if found.http_headers is not None and found.http_headers.status_code:
            return found, payload
    raise ContentError("not_http")


def _next_member(file: IO[bytes], position: int) -> int | None:
    """Offset of the next gzip member that holds the beginning of a record."""
    tail = b""
    file.seek(position)
    while piece := file.read(SEARCH):
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
    """Whether a gzip member at ``position`` starts with a WARC record; the file's place stays."""
    back = file.tell()
    file.seek(position)
    try:
        unpacker = zlib.decompressobj(GZIP)
        return unpacker.decompress(file.read(512), 5) == b"WARC/"
    except zlib.error:
        return False
    finally:
        file.seek(back)


def _one_line(value: str) -> str:
    """A field's value without line ends, which would begin a field of their own."""
    return " ".join(value.splitlines()) if not value.isprintable() else value
