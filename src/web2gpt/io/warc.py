"""WARC files: records written as single gzip members, responses read in spite of damage.

WARC/1.1 (ISO 28500:2017). Each record is a gzip member of its own, so records can be copied and
cut off whole. Response bodies are written as the payload after transfer and content coding, with
Content-Length to match; the fields that told of the codings are renamed ``X-Crawler-...``, the
convention of Common Crawl's archives, so that any reader gets the page without decoding again.
"""

import base64
import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fastwarc.warc import WarcRecord
from isal import isal_zlib

from web2gpt.errors import InputError
from web2gpt.io.content_codings import GZIP, ContentError, decode_content
from web2gpt.io.warc_blocks import Block, Damage, read_blocks

RECODED = ("content-length", "content-encoding", "transfer-encoding")
MAX_HEAD = 1 << 20  # bytes of HTTP head beside the payload


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
    outcome: str | None = None  # X-Outcome: what our fetcher made of the last answer to a URL


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
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def digest(content: bytes) -> str:
    """SHA-1 in base 32, the labelled form that WARC tools expect."""
    return (
        f"sha1:{base64.b32encode(hashlib.sha1(content, usedforsecurity=False).digest()).decode()}"
    )


def record(fields: Mapping[str, str], block: bytes, level: int) -> bytes:
    """One record as one gzip member; ``fields`` begin with WARC-Type and lack Content-Length.
    ``level`` is igzip's, 0 to 3."""
    named = {**fields, "WARC-Block-Digest": digest(block), "Content-Length": str(len(block))}
    head = "".join(f"{name}: {_one_line(value)}\r\n" for name, value in named.items())
    content = b"".join((b"WARC/1.1\r\n", head.encode(), b"\r\n", block, b"\r\n\r\n"))
    return isal_zlib.compress(content, level, GZIP)


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

    Damage comes as a ``BadRecord``, and reading goes on behind it (see ``warc_blocks``). So does a
    payload of more than ``max_bytes``, before or after decompression (``too_large``).
    Raises ``InputError`` if the file cannot be opened.
    """
    try:
        for found in read_blocks(path, max_bytes + MAX_HEAD):
            if isinstance(found, Damage):
                yield _bad(found, path, "broken_record")
            elif _is_http(found):
                yield _response(found, path, max_bytes)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); name another file."
        ) from error


def _is_http(found: Block) -> bool:
    """Whether a record is an answer by HTTP; crawlers file look-ups of names as responses too."""
    fields = found.headers
    if (fields.get("WARC-Type") or "").lower() != "response":
        return False
    scheme = (fields.get("WARC-Target-URI") or "").lstrip("<").partition(":")[0].lower()
    kind = (fields.get("Content-Type") or "").lower()
    return scheme not in ("dns", "ftp", "ftps", "whois") or kind.startswith("application/http")


def _bad(found: Block | Damage, path: Path, reason: str) -> BadRecord:
    fields = found.headers
    return BadRecord(
        file=str(path),
        offset=found.offset,
        reason=reason,
        record_id=fields.get("WARC-Record-ID") if fields else None,
        url=fields.get("WARC-Target-URI") if fields else None,
    )


def _response(found: Block, path: Path, max_bytes: int) -> Response | BadRecord:
    if found.content is None:
        return _bad(found, path, "too_large")
    try:
        http, payload = _parse_http(found.content)
        coding = http.http_headers.get("Content-Encoding") or ""
        payload = decode_content(coding, payload, max_bytes)
    except ContentError as error:
        return _bad(found, path, error.reason)
    return Response(
        file=str(path),
        offset=found.offset,
        record_id=found.headers.get("WARC-Record-ID"),
        url=found.headers.get("WARC-Target-URI"),
        date=found.headers.get("WARC-Date"),
        requested_url=found.headers.get("X-Requested-URL"),
        source=found.headers.get("X-Source"),
        truncated=found.headers.get("WARC-Truncated"),
        status=http.http_headers.status_code or 0,
        content_type=(http.http_content_type or "").strip().lower() or None,
        charset=http.http_charset,
        headers=tuple(http.http_headers.astuples()),
        payload=payload,
        outcome=found.headers.get("X-Outcome"),
    )


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


def _one_line(value: str) -> str:
    """A field's value without line ends, which would begin a field of their own."""
    return " ".join(value.splitlines()) if not value.isprintable() else value
