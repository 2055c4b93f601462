"""A web server that does exactly as told, byte by byte, and counts what it is asked."""

import asyncio
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

import pytest

from web2gpt.config.fetch import Fetch
from web2gpt.fetch.client import Client
from web2gpt.fetch.page import Fetched, PageFetcher
from web2gpt.fetch.resolver import Served
from web2gpt.fetch.urllist import ListedUrl

Act = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


def answer(body=b"<p>hello</p>", status="200 OK", fields=(), kind="text/html", version="1.1"):
    """A whole response."""
    head = [f"HTTP/{version} {status}", f"Content-Length: {len(body)}"]
    head += [f"Content-Type: {kind}"] if kind else []
    return ("\r\n".join([*head, *fields]) + "\r\n\r\n").encode() + body


@dataclass
class ScriptedServer:
    """Answers each path with bytes (sent, then keep-alive) or an action (then closed)."""

    pages: dict[str, bytes | Act] = field(default_factory=dict)
    address: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    requests: Counter = field(default_factory=Counter)
    heads: list[bytes] = field(default_factory=list)
    default: bytes = answer(b"", "404 Not Found")

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.address, 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error):
        self._server.close()

    async def _serve(self, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                self.requests[path] += 1
                self.heads.append(head)
                page = self.pages.get(path, self.default)
                if not isinstance(page, bytes):
                    await page(head, writer)
                    return
                writer.write(page)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


QUICK = {
    "serve": "a folder",
    "delay": 0.0,
    "backoff": 0.0,
    "retries": 0,
    "first_byte_timeout": 0.3,
    "connect_timeout": 5.0,
    "idle_timeout": 0.3,
    "timeout": 1.0,
    "max_bytes": 100_000,
    "max_wire_bytes": 100_000,
}


async def fetch_one(server, path, **settings) -> Fetched:
    """Fetch http://site.test<path> from the server."""
    return (await fetch_all(server, [f"http://site.test{path}"], **settings))[0]


async def fetch_as_they_come(server, urls, hosts=("site.test", "other.test"), **settings):
    """Fetch all ``urls`` at once, as far as the settings allow; each page as it ends."""
    chosen = Fetch(**{**QUICK, **settings})
    served = Served(frozenset(hosts), server.address, server.port)
    async with Client(chosen, served) as client:
        fetcher = PageFetcher(client, chosen)
        listed = [ListedUrl(url, "list") for url in urls]
        for fetched in asyncio.as_completed([fetcher.fetch(one) for one in listed]):
            yield await fetched


async def fetch_all(server, urls, hosts=("site.test", "other.test"), **settings) -> list[Fetched]:
    """All pages, in the order of ``urls``."""
    found = [page async for page in fetch_as_they_come(server, urls, hosts, **settings)]
    return sorted(found, key=lambda page: urls.index(page.outcome.url))


@pytest.fixture
def web():
    """``web(pages, path, **settings)`` serves the pages and fetches one: outcome and server."""

    def run(pages, path="/page", **settings):
        async def both():
            async with ScriptedServer(dict(pages)) as server:
                fetched = await fetch_one(server, path, **settings)
                return fetched, server

        return asyncio.run(both())

    return run


@pytest.fixture(name="answer")
def answer_fixture():
    return answer


@pytest.fixture(name="server_class")
def server_class_fixture():
    return ScriptedServer


@pytest.fixture(name="fetch_all")
def fetch_all_fixture():
    return fetch_all


@pytest.fixture(name="fetch_as_they_come")
def fetch_as_they_come_fixture():
    return fetch_as_they_come
