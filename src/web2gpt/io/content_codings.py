"""Undo HTTP content codings piece by piece, under a limit.

A decompression bomb costs at most the limit in memory, whatever its ratio: each step asks for no
more output than is still allowed. Codings as RFC 9110 section 8.4.1 names them; like browsers,
deflate is taken with or without its zlib wrapper, and what follows a complete stream is ignored.
"""

import zlib
from collections.abc import Iterable
from typing import Protocol

import brotli  # type: ignore[import-untyped]  # has no types

GZIP, ZLIB, RAW = zlib.MAX_WBITS | 16, zlib.MAX_WBITS, -zlib.MAX_WBITS
STEP = 1 << 16  # bytes of output at a time
MAX_CODINGS = 2  # applied one upon the other; more is not seen outside attacks
ACCEPTED = "gzip, deflate, br"
"""What this module undoes, in the form of an Accept-Encoding field."""


class ContentError(Exception):
    """A body cannot be had; ``reason`` is ``too_large``, ``bad_encoding`` or the reader's own."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class _Coding(Protocol):
    def feed(self, data: bytes) -> Iterable[bytes]: ...

    def is_complete(self) -> bool: ...


class ContentDecoder:
    """Decodes one body: ``feed`` each piece, then ``finish``. ``codings`` as in Content-Encoding.

    Raises ``ContentError`` for an unknown coding, broken data, or more than ``limit`` bytes.
    """

    def __init__(self, codings: str, limit: int):
        names = [name.strip().lower() for name in codings.split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if len(names) > MAX_CODINGS:
            raise ContentError("bad_encoding")
        self._codings = [_coding(name) for name in reversed(names)]
        self._limit, self._parts, self._size = limit, list[bytes](), 0

    def feed(self, data: bytes) -> None:
        try:
            self._pass_on(data, 0)
        except (zlib.error, brotli.error) as error:
            raise ContentError("bad_encoding") from error

    def finish(self) -> bytes:
        """The decoded body."""
        if self._fed_anything() and not all(coding.is_complete() for coding in self._codings):
            raise ContentError("bad_encoding")
        return self.so_far()

    def so_far(self) -> bytes:
        """What is decoded by now, at most the limit."""
        return b"".join(self._parts)[: self._limit]

    def _fed_anything(self) -> bool:
        return self._size > 0 or any(getattr(coding, "started", False) for coding in self._codings)

    def _pass_on(self, data: bytes, depth: int) -> None:
        if depth < len(self._codings):
            for piece in self._codings[depth].feed(data):
                self._pass_on(piece, depth + 1)
        elif data:
            self._size += len(data)
            self._parts.append(data)
            if self._size > self._limit:
                raise ContentError("too_large")


def decode_content(codings: str, data: bytes, limit: int) -> bytes:
    """Decode a whole body of at most ``limit`` bytes; raises ``ContentError``."""
    decoder = ContentDecoder(codings, limit)
    decoder.feed(data)
    return decoder.finish()


def _coding(name: str) -> _Coding:
    match name:
        case "gzip" | "x-gzip":
            return _Zlib(GZIP)
        case "deflate":
            return _Zlib(ZLIB)
        case "br":
            return _Brotli()
        case _:
            raise ContentError("bad_encoding")


class _Zlib:
    """gzip (any number of members), or deflate with or without its wrapper."""

    def __init__(self, form: int):
        self._form = form
        self._stream = zlib.decompressobj(form)
        self.started = False

    def is_complete(self) -> bool:
        return self._stream.eof

    def feed(self, data: bytes) -> Iterable[bytes]:
        if self._form == ZLIB and not self.started and data and data[0] & 0x0F != 8:
            self._form = RAW
            self._stream = zlib.decompressobj(RAW)
        self.started = self.started or bool(data)
        while data:
            if self._stream.eof:
                if self._form != GZIP or not data.startswith(b"\x1f\x8b"):
                    return
                self._stream = zlib.decompressobj(GZIP)
            yield self._stream.decompress(data, STEP)
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self.started = False

    def is_complete(self) -> bool:
        return bool(self._stream.is_finished())

    def feed(self, data: bytes) -> Iterable[bytes]:
        self.started = self.started or bool(data)
        while not self._stream.is_finished():
            piece = self._stream.process(data, output_buffer_limit=STEP)
            if not piece:  # it may hold output back while it already accepts more input
                return
            yield piece
            data = b""
