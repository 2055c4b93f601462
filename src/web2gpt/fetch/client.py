"""The HTTP client: one request at a time becomes one ``Exchange``, within all limits.

Redirects, decompression and cookies are not left to aiohttp: each hop is to be checked and
archived, each body decoded under a limit, and nothing remembered between requests. TLS is
verified. Concurrency is the caller's.
"""

import asyncio
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from web2gpt import __version__
from web2gpt.config.fetch import Fetch
from web2gpt.fetch.addresses import AddressGuard, RefusedAddressError
from web2gpt.fetch.exchange import CAUGHT, Exchange, Failure, classify, media_type
from web2gpt.fetch.proxies import Proxies, is_special_name
from web2gpt.fetch.resolver import GuardedResolver, Served
from web2gpt.io.content_codings import ACCEPTED, ContentDecoder, ContentError

MAX_HEADER = 32 << 10  # bytes of one header field
MAX_HEADERS = 256
SECRET = frozenset(("Proxy-Authorization",))  # header fields that are not archived
ASIDE = 16 << 10  # bytes read of the body of an answer that is not kept
TRUNCATED = {"too_large": "length", "timeout": "time", "incomplete": "disconnect",
             "reset": "disconnect"}  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """Which bodies are read in full: status 200 and one of ``types`` (none: any)."""

    types: frozenset[str]
    max_bytes: int
    max_wire_bytes: int
    start_suffices: bool = False  # whether a body beyond the limits is taken as far as they go

    def takes(self, status: int, content_type: str | None) -> bool:
        return status == 200 and (not self.types or content_type in self.types)


class _Response(aiohttp.ClientResponse):
    """Remembers the peer's address, which is gone once the connection is given back."""

    peer: str | None = None

    async def start(self, connection: Connection) -> Self:
        name = connection.transport.get_extra_info("peername") if connection.transport else None
        self.peer = str(name[0]) if name else None
        await super().start(connection)
        return self


@dataclass
class _Answer:
    """What has come so far of an answer, so that a failure on the way loses none of it."""

    url: str
    address: str | None = None
    request: bytes = b""
    status: int = 0
    status_line: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    truncated: str | None = None
    date: datetime = field(default_factory=lambda: datetime.now(UTC))

    def exchange(self, failure: Failure | None = None) -> Exchange:
        truncated = self.truncated
        if failure is not None and truncated is None:
            truncated = TRUNCATED.get(failure.reason, "unspecified")
        return Exchange(**{**vars(self), "truncated": truncated}, failure=failure)


class Client:
    """``async with Client(settings) as client: exchange = await client.get(...)``."""

    def __init__(self, settings: Fetch, served: Served | None = None):
        self._settings = settings
        only = (served.address, served.port) if served else None
        self._guard = AddressGuard(settings.allow_networks, only)
        self._served = served
        use_proxies = settings.proxies and served is None
        self._proxies = Proxies.from_environment() if use_proxies else Proxies({}, {})
        for host, port in self._proxies.endpoints:
            self._guard.admit_proxy(host, port)  # counts where the host is an address
        about = f" (+{settings.contact})" if settings.contact else ""
        self._headers = {
            "User-Agent": f"{settings.user_agent}/{__version__}{about}",
            "Accept": ", ".join((*settings.content_types, "*/*;q=0.1")),
            "Accept-Encoding": ACCEPTED,
        }

    async def __aenter__(self) -> Self:
        settings = self._settings
        connector = aiohttp.TCPConnector(
            limit=0,
            resolver=GuardedResolver(self._guard, self._served, self._proxies.endpoints),
            ttl_dns_cache=300,
            socket_factory=self._guard.open_socket,
            ssl=ssl.create_default_context(),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=settings.connect_timeout, sock_read=settings.idle_timeout
            ),
            auto_decompress=False,
            response_class=_Response,
            max_line_size=MAX_HEADER,
            max_field_size=MAX_HEADER,
            max_headers=MAX_HEADERS,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def get(self, url: str, wanted: Wanted, seconds: float) -> Exchange:
        """Send one GET request; never raises for what the other side does.

        ``seconds`` bounds the whole exchange. A body that is not ``wanted`` is read a little way
        only, and cut off.
        """
        answer = _Answer(url)
        try:
            await self._run(answer, wanted, asyncio.get_running_loop().time() + seconds)
        except CAUGHT as error:
            return answer.exchange(classify(error))
        return answer.exchange()

    async def _run(self, answer: _Answer, wanted: Wanted, deadline: float) -> None:
        target = URL(answer.url, encoded=True)
        proxy = self._proxies.for_url(target)
        self._check_host(target, is_resolved_here=proxy is None)
        settings = self._settings
        options = proxy.options(target.scheme) if proxy else {}
        asking = self._session.get(target, allow_redirects=False, **options)
        head = asyncio.get_running_loop().time()
        head += settings.connect_timeout + settings.first_byte_timeout
        async with asyncio.timeout_at(min(head, deadline)) as limit:
            async with asking as response:
                limit.reschedule(deadline)
                _note_head(answer, response)
                if proxy is not None:
                    answer.address = None  # known to the proxy alone
                kind = media_type(response.headers.get("Content-Type"))
                if wanted.takes(answer.status, kind):
                    await _read_whole(answer, response, wanted)
                else:
                    await _read_aside(answer, response)

    def _check_host(self, url: URL, *, is_resolved_here: bool) -> None:
        """Raise ``RefusedAddressError`` for what the resolver does not see: addresses written in
        URLs, the proxies themselves, and, where a proxy resolves, names of no public host."""
        host, port = url.host or "", url.port or 0
        if ":" in host or host.rpartition(".")[2].isdigit():
            self._guard.check(host, port)
        if (host, port) in self._proxies.endpoints:
            raise RefusedAddressError(f"{host} port {port} is a proxy")
        if not is_resolved_here and is_special_name(host):
            raise RefusedAddressError(f"{host} is no public host's name")


def _note_head(answer: _Answer, response: aiohttp.ClientResponse) -> None:
    sent = response.request_info
    lines = [f"{sent.method} {sent.url.raw_path_qs} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in sent.headers.items() if name not in SECRET]
    answer.request = ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")
    version = response.version or aiohttp.HttpVersion11
    line = f"HTTP/{version.major}.{version.minor} {response.status} {response.reason or ''}"
    answer.status_line = line.encode("utf-8", "surrogateescape")
    answer.status, answer.headers = response.status, response.raw_headers
    answer.address = response.peer if isinstance(response, _Response) else None


async def _read_whole(answer: _Answer, response: aiohttp.ClientResponse, wanted: Wanted) -> None:
    """Read and decode a body, or raise ``ContentError`` at the first byte too many."""
    if (response.content_length or 0) > wanted.max_wire_bytes and not wanted.start_suffices:
        raise ContentError("too_large")
    decoder = ContentDecoder(_codings(response), wanted.max_bytes)
    try:
        size = 0
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > wanted.max_wire_bytes:
                raise ContentError("too_large")
            decoder.feed(piece)
        answer.body = decoder.finish()
    except ContentError:
        answer.body = decoder.so_far()
        raise


async def _read_aside(answer: _Answer, response: aiohttp.ClientResponse) -> None:
    """Read a short body, so that the connection can be used again; cut off a long one."""
    body = b""
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > ASIDE:
            answer.truncated = "length"
            response.close()
            return
    try:
        decoder = ContentDecoder(_codings(response), ASIDE)
        decoder.feed(body)
        answer.body = decoder.finish()
    except ContentError:
        answer.truncated = "unspecified"


def _codings(response: aiohttp.ClientResponse) -> str:
    """What is to be undone: content codings, then those of the transfer, but for the chunks."""
    names = [
        name
        for field in ("Content-Encoding", "Transfer-Encoding")
        for value in response.headers.getall(field, ())
        for name in value.split(",")
    ]
    return ", ".join(name for name in names if name.strip().lower() != "chunked")
