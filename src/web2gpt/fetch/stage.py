"""The stage fetch for one shard: crawl what is missing, then publish."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from web2gpt.config.fetch import PACE, Fetch
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import ConfigError, InputError
from web2gpt.fetch.command import ServeFolder
from web2gpt.fetch.crawl import Crawl
from web2gpt.fetch.earlier import Earlier
from web2gpt.fetch.journal import Journal
from web2gpt.fetch.publish import FetchFiles, Publication
from web2gpt.fetch.resolver import Served
from web2gpt.fetch.urllist import UrlList
from web2gpt.io.work import WorkFolder


def fetch_shard(files: FetchFiles, settings: Fetch, serve: ServeFolder) -> None:
    """Fetch a shard's URLs, or what an earlier try left, and publish archive and outcomes."""
    check_contact(settings)
    urls = UrlList(files.urls)
    decides = settings.model_dump(mode="json", exclude={*PACE, "retry_failed"})
    job = {"stage": "fetch", "version": VERSIONS["fetch"], "urls": urls.content, **decides}
    with WorkFolder(files.work, job) as work:
        earlier = Earlier.find(work.path)
        if not _is_due(earlier, settings.retry_failed):
            is_kept_only = earlier is not None and not earlier.is_published
            if work.is_published(files.outputs) and not is_kept_only:
                return
            earlier = _unpublished(earlier)
        start = time.monotonic()
        with Journal(work.path / "journal", len(urls)) as journal:
            crawl = Crawl(urls, journal, settings)
            asyncio.run(_run(crawl, _wanted(urls, earlier, settings), work, serve))
            publication = Publication(files, urls, journal, earlier, settings)
            publication.publish(work, time.monotonic() - start)
    print(publication.statistics.summary(), flush=True)


def _is_due(earlier: Earlier | None, asked: int) -> bool:
    """Whether another round over the failures of an earlier run is asked for."""
    return earlier is not None and earlier.round < asked


def _unpublished(earlier: Earlier | None) -> Earlier | None:
    """What an earlier run kept, if it was killed before it published that. If it did publish, and
    the outputs are gone or changed, everything is to be fetched anew."""
    if earlier is not None and earlier.is_published:
        earlier.discard()
        return None
    return earlier


def check_contact(settings: Fetch) -> None:
    """Raise ``ConfigError`` for a crawl of real hosts that does not say whose it is."""
    if settings.serve is None and not settings.contact:
        raise ConfigError(
            "fetch.contact: a crawl of real hosts needs an e-mail address or a page that site "
            "owners can turn to, such as --contact crawler@example.org"
        )
    if settings.serve is not None and not Path(settings.serve).is_dir():
        raise InputError(f"{settings.serve}: no such folder; fetch.serve names a folder of sites.")


def _wanted(urls: UrlList, earlier: Earlier | None, settings: Fetch) -> npt.NDArray[np.bool_]:
    """Which URLs this run is to fetch: all of them, or those of an earlier run that failed."""
    if earlier is None:
        return urls.readable
    if _is_due(earlier, settings.retry_failed):
        return earlier.failed() & urls.readable
    return np.zeros(len(urls), np.bool_)


async def _run(
    crawl: Crawl, wanted: npt.NDArray[np.bool_], work: WorkFolder, serve: ServeFolder
) -> None:
    async with _served(crawl.settings, serve) as served:
        await crawl.run(wanted, work, served)


@asynccontextmanager
async def _served(settings: Fetch, serve: ServeFolder) -> AsyncIterator[Served | None]:
    if settings.serve is None:
        yield None
        return
    async with serve(Path(settings.serve)) as (hosts, address, port):
        yield Served(hosts, address, port)
