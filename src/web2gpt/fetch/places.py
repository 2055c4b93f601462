"""Places for requests under way at all hosts together.

A request that has been under way for ``patience`` seconds counts no longer, so that hosts that are
stuck do not hold up the others; beside the quick ones there is room for ``SLOW`` times as many.
"""

import asyncio
from dataclasses import dataclass, field
from itertools import islice

SLOW = 8  # slow requests for each quick one


@dataclass(eq=False)
class Place:
    """Held by one request."""

    host: str
    start: float
    is_slow: bool
    timer: asyncio.TimerHandle = field(init=False)


class Places:
    """``place = await places.take(host)``, the request, ``places.give_back(place)``."""

    def __init__(self, concurrency: int, patience: float):
        self._patience = patience
        self._quick = asyncio.Semaphore(concurrency)
        self._room_for_slow = SLOW * concurrency
        self._under_way: dict[Place, None] = {}  # the longest first

    async def take(self, host: str, was_slow: bool) -> Place:
        """Wait for a place. A host that was slow before starts among the slow, if there is room."""
        is_slow = was_slow and self._room_for_slow > 0
        if is_slow:
            self._room_for_slow -= 1
        else:
            await self._quick.acquire()
        loop = asyncio.get_running_loop()
        place = Place(host, loop.time(), is_slow)
        place.timer = loop.call_later(self._patience, self._lose_patience, place)
        self._under_way[place] = None
        return place

    def give_back(self, place: Place) -> None:
        place.timer.cancel()
        del self._under_way[place]
        if place.is_slow:
            self._room_for_slow += 1
        else:
            self._quick.release()

    def longest(self, count: int) -> list[tuple[str, float]]:
        """The hosts of the requests that have been under way longest, with their seconds."""
        now = asyncio.get_running_loop().time()
        return [(place.host, now - place.start) for place in islice(self._under_way, count)]

    def _lose_patience(self, place: Place) -> None:
        if not place.is_slow and self._room_for_slow > 0:
            place.is_slow = True
            self._room_for_slow -= 1
            self._quick.release()
