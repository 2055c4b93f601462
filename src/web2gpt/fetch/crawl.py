"""All URLs of a shard, many hosts at a time, within everyone's manners.

A lane takes one host after another; inside a lane at most ``per_host`` pages are under way. There
are more lanes than connections, since most hosts spend most of the time in their pause.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from web2gpt.config.fetch import Fetch
from web2gpt.errors import LeaseError
from web2gpt.fetch.client import Client
from web2gpt.fetch.journal import Journal
from web2gpt.fetch.page import PageFetcher
from web2gpt.fetch.places import Places
from web2gpt.fetch.resolver import Served
from web2gpt.fetch.urllist import Numbers, UrlList
from web2gpt.io.progress import ProgressLine
from web2gpt.io.work import WorkFolder

LANES = 8  # for each connection
LEASE_CHECK = 5.0  # seconds between looks at the lease
NEWS = 1.0  # seconds between two notes on the progress line
NAMED = 3  # hosts named there


class Crawl:
    """Fetches what the journal does not have yet."""

    def __init__(self, urls: UrlList, journal: Journal, settings: Fetch):
        self.settings = settings
        self._urls, self._journal = urls, journal
        name = f"fetch {urls.path.name.partition('.')[0]}"
        self._progress = ProgressLine(name, unit="URLs", total=len(urls))
        self._outcomes: Counter[str] = Counter()

    async def run(
        self, wanted: npt.NDArray[np.bool_], work: WorkFolder, served: Served | None
    ) -> None:
        """Fetch the ``wanted`` URLs. Raises ``LeaseError`` if the work folder was taken over."""
        missing = wanted & ~self._journal.done
        hosts = self._urls.by_host(missing)
        lanes = self.settings.concurrency * LANES
        async with Client(self.settings, served) as client:
            fetcher = PageFetcher(client, self.settings)
            with self._progress as progress:
                progress.advance(len(missing) - int(missing.sum()))
                try:
                    async with asyncio.TaskGroup() as group:
                        others = [group.create_task(_watch(work)),
                                  group.create_task(self._tell(fetcher.hosts.places))]  # fmt: skip
                        await self._run_lanes(fetcher, hosts, lanes)
                        for task in others:
                            task.cancel()
                except* LeaseError as errors:
                    raise errors.exceptions[0] from None

    async def _run_lanes(self, fetcher: PageFetcher, hosts: Iterator[Numbers], lanes: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(lanes, len(self._urls))):
                group.create_task(self._lane(fetcher, hosts))

    async def _lane(self, fetcher: PageFetcher, hosts: Iterator[Numbers]) -> None:
        for numbers in hosts:
            queue = iter(numbers.tolist())
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.settings.per_host, len(numbers))):
                    group.create_task(self._pages(fetcher, queue))

    async def _pages(self, fetcher: PageFetcher, queue: Iterator[int]) -> None:
        for number in queue:
            fetched = await fetcher.fetch(self._urls[number])
            self._journal.append(number, fetched)
            self._outcomes[fetched.outcome.outcome] += 1
            self._progress.advance()

    async def _tell(self, places: Places) -> None:
        """Keep the progress line alive, also while nothing comes."""
        while True:
            await asyncio.sleep(NEWS)
            self._progress.advance(0, note=self.note(places))

    def note(self, places: Places) -> str:
        """Outcomes so far, and the hosts that are waited for longest."""
        seen = [f"{count:,} {name}" for name, count in self._outcomes.most_common(4)]
        slow = [f"{host} {seconds:.0f} s" for host, seconds in places.longest(NAMED)
                if seconds > self.settings.patience]  # fmt: skip
        return ", ".join(seen) + (f"; slowest {', '.join(slow)}" if slow else "")


async def _watch(work: WorkFolder) -> None:
    while True:
        await asyncio.sleep(LEASE_CHECK)
        work.check()
