"""All URLs of a shard, many hosts at a time, within everyone's manners.

A lane takes one host after another; inside a lane at most ``per_host`` pages are under way. There
are more lanes than connections, since most hosts spend most of the time in their pause.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator

from web2gpt.config.fetch import Fetch
from web2gpt.errors import LeaseError
from web2gpt.fetch.client import Client
from web2gpt.fetch.journal import Journal
from web2gpt.fetch.page import PageFetcher
from web2gpt.fetch.resolver import Served
from web2gpt.fetch.urllist import Numbers, UrlList
from web2gpt.io.progress import ProgressLine
from web2gpt.io.work import WorkFolder

LANES = 8  # for each connection
LEASE_CHECK = 5.0  # seconds between looks at the lease


class Crawl:
    """Fetches what the journal does not have yet."""

    def __init__(self, urls: UrlList, journal: Journal, settings: Fetch, progress: ProgressLine):
        self._urls, self._journal, self._settings = urls, journal, settings
        self._progress = progress
        self._outcomes: Counter[str] = Counter()

    async def run(self, work: WorkFolder, served: Served | None) -> None:
        """Fetch everything. Raises ``LeaseError`` if the work folder was taken over."""
        hosts = self._urls.by_host(~self._journal.done)
        lanes = self._settings.concurrency * LANES
        async with Client(self._settings, served) as client:
            fetcher = PageFetcher(client, self._settings)
            try:
                async with asyncio.TaskGroup() as group:
                    watch = group.create_task(_watch(work))
                    await self._run_lanes(fetcher, hosts, lanes)
                    watch.cancel()
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
                for _ in range(min(self._settings.per_host, len(numbers))):
                    group.create_task(self._pages(fetcher, queue))

    async def _pages(self, fetcher: PageFetcher, queue: Iterator[int]) -> None:
        for number in queue:
            fetched = await fetcher.fetch(self._urls[number])
            self._journal.append(number, fetched)
            self._outcomes[fetched.outcome.outcome] += 1
            seen = ", ".join(f"{count:,} {name}" for name, count in self._outcomes.most_common(4))
            self._progress.advance(note=seen)


async def _watch(work: WorkFolder) -> None:
    while True:
        await asyncio.sleep(LEASE_CHECK)
        work.check()
