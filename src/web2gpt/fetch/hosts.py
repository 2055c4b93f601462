"""Manners towards one host: few requests at once, a pause between two, waiting when asked to.

The pause is counted between the starts of requests, at the moment they really start. Robots,
redirects and retries take their turns like everything else.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from web2gpt.config.fetch import Fetch
from web2gpt.fetch.places import Places

KEPT = 4096  # hosts remembered though nothing is under way at them


class Host:
    """One host name; ``places`` are shared by all hosts."""

    def __init__(self, name: str, per_host: int, delay: float, places: Places):
        self.delay = delay
        self._name, self._places = name, places
        self._slots = asyncio.Semaphore(per_host)
        self._starts = asyncio.Lock()
        self._next_start = 0.0
        self._was_slow = False
        self.users = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the right to one request."""
        self.users += 1
        try:
            async with self._slots:
                async with self._starts:
                    await self._wait()
                    place = await self._places.take(self._name, self._was_slow)
                    self._next_start = asyncio.get_running_loop().time() + self.delay
                try:
                    yield
                finally:
                    self._was_slow = place.is_slow
                    self._places.give_back(place)
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
        self.places = Places(settings.concurrency, settings.patience)
        self._hosts: OrderedDict[str, Host] = OrderedDict()

    def __getitem__(self, name: str) -> Host:
        host = self._hosts.get(name)
        if host is None:
            host = Host(name, self._settings.per_host, self._settings.delay, self.places)
            self._hosts[name] = host
        self._hosts.move_to_end(name)
        while len(self._hosts) > KEPT:
            oldest, found = next(iter(self._hosts.items()))
            if not found.is_idle():
                self._hosts.move_to_end(oldest)
                break
            del self._hosts[oldest]
        return host
