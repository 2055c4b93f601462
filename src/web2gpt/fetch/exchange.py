"""One HTTP request and what came of it; and the names of all that can go wrong."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import aiohttp
from aiohttp import http_exceptions

from web2gpt.fetch.addresses import RefusedAddressError
from web2gpt.io.content_codings import ContentError

UNREADABLE = frozenset(("bad_http", "bad_encoding", "bad_url", "bad_line", "unexpected"))
"""Outcomes that stand under ``errors``; every other is a fact of the web, under ``dropped``."""

CAUGHT = (
    aiohttp.ClientError,
    ContentError,
    OSError,
    ValueError,
    http_exceptions.HttpProcessingError,
)
"""What a request can raise (``TimeoutError`` is an ``OSError``)."""


@dataclass(frozen=True)
class Failure:
    """Why a request brought no whole answer; ``may_pass``: a later try may do better."""

    reason: str
    may_pass: bool = False


@dataclass(frozen=True)
class Exchange:
    """A request and its answer, as far as it came. ``status`` is 0 if no answer came at all."""

    url: str
    date: datetime
    address: str | None
    request: bytes  # request line and headers, with the empty line
    status: int = 0
    status_line: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""  # decoded
    truncated: str | None = None  # as WARC-Truncated has it
    failure: Failure | None = None

    def header(self, name: str) -> str | None:
        """The first value of a header field, ``name`` in lower case."""
        wanted = name.encode()
        for field, value in self.headers:
            if field.lower() == wanted:
                return value.decode("utf-8", "replace").strip()
        return None

    @property
    def content_type(self) -> str | None:
        """Media type without parameters, in lower case."""
        return media_type(self.header("content-type"))


def media_type(value: str | None) -> str | None:
    return (value or "").partition(";")[0].strip().lower() or None


# The first line whose class an error, or what it wraps, belongs to gives the reason.
WRAPPED: tuple[tuple[type[BaseException], str], ...] = (
    (RefusedAddressError, "refused_address"),
    (socket.gaierror, "dns"),
    (http_exceptions.LineTooLong, "header_too_large"),
    (http_exceptions.ContentLengthError, "incomplete"),
    (http_exceptions.TransferEncodingError, "incomplete"),  # chunks that break off
    (http_exceptions.HttpProcessingError, "bad_http"),
)
RAISED: tuple[tuple[type[BaseException], str], ...] = (
    (aiohttp.InvalidURL, "bad_url"),
    (aiohttp.ClientProxyConnectionError, "proxy"),
    (aiohttp.ClientHttpProxyError, "proxy"),
    (aiohttp.ClientSSLError, "tls"),
    (aiohttp.ClientConnectorError, "connect"),
    (TimeoutError, "timeout"),
    (aiohttp.ClientPayloadError, "incomplete"),
    (aiohttp.ClientConnectionError, "reset"),
    (OSError, "reset"),
    (aiohttp.ClientError, "bad_http"),
    (ValueError, "bad_url"),
)
MAY_PASS = frozenset(("connect", "timeout", "incomplete", "reset", "proxy"))
STATUS_MAY_PASS = frozenset((408, 429, 500, 502, 503, 504))
MAY_PASS_LATER = frozenset((*MAY_PASS, "dns", "robots_unreachable"))


def may_pass(outcome: str) -> bool:
    """Whether a URL with this outcome is worth another try on another day."""
    kind, _, status = outcome.partition("_")
    if kind == "http":
        return int(status) in STATUS_MAY_PASS
    return outcome in MAY_PASS_LATER


def classify(error: BaseException) -> Failure:
    """The reason for an exception out of ``CAUGHT``, looking through aiohttp's wrappings."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ContentError):
            return Failure(cause.reason)
    for kind, reason in WRAPPED:
        for cause in causes:
            if isinstance(cause, kind):
                again = reason == "dns" and getattr(cause, "errno", None) == socket.EAI_AGAIN
                return Failure(reason, reason in MAY_PASS or again)
    reason = next(reason for kind, reason in RAISED if isinstance(error, kind))
    return Failure(reason, reason in MAY_PASS)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what it wraps, and so on."""
    seen = 0
    while error is not None and seen < 10:
        yield error
        inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None)
        error = inner if isinstance(inner, BaseException) else error.__cause__
        seen += 1
