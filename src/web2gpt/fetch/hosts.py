"""Manners towards one host: few requests at once, a pause between two, waiting when asked to.

The pause is counted between the starts of requests, at the moment they really start. Robots,
redirects and retries take their turns like everything else.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from web2gpt.config.fetch import Fetch

KEPT = 4096  # hosts remembered though nothing is under way at them


class Host:
    """One host name. ``everywhere`` bounds the requests under way at all hosts together."""

    def __init__(self, per_host: int, delay: float, everywhere: asyncio.Semaphore):
        self.delay = delay
        self._slots = asyncio.Semaphore(per_host)
        self._starts = asyncio.Lock()
        self._everywhere = everywhere
        self._next_start = 0.0
        self.users = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the right to one request."""
        self.users += 1
        try:
            async with self._slots:
                async with self._starts:
                    await self._wait()
                    await self._everywhere.acquire()
                    self._next_start = asyncio.get_running_loop().time() + self.delay
                try:
                    yield
                finally:
                    self._everywhere.release()
        finally:
            self.users -= 1

    def pause(self, seconds: float) -> None:
        """Start nothing at this host for so long."""
        until = asyncio.get_running_loop().time() + seconds
        self._next_start = max(self._next_start, until)

    def is_idle(self) -> bool:
        return not self.users and self._next_start <= asyncio.get_running_loop().time()

    async def _wait(self) -> None:
        while (wait := self._next_start - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(wait)


class Hosts:
    """All hosts of a crawl, by name; those long unused and idle are forgotten."""

    def __init__(self, settings: Fetch):
        self._settings = settings
        self._everywhere = asyncio.Semaphore(settings.concurrency)
        self._hosts: OrderedDict[str, Host] = OrderedDict()

    def __getitem__(self, name: str) -> Host:
        host = self._hosts.get(name)
        if host is None:
            host = Host(self._settings.per_host, self._settings.delay, self._everywhere)
            self._hosts[name] = host
        self._hosts.move_to_end(name)
        while len(self._hosts) > KEPT:
            oldest, found = next(iter(self._hosts.items()))
            if not found.is_idle():
                self._hosts.move_to_end(oldest)
                break
            del self._hosts[oldest]
        return host
