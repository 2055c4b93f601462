"""The stage fetch for one shard: crawl what is missing, then publish."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from web2gpt.config.fetch import PACE, Fetch
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import ConfigError, InputError
from web2gpt.fetch.command import ServeFolder
from web2gpt.fetch.crawl import Crawl
from web2gpt.fetch.journal import Journal
from web2gpt.fetch.publish import FetchFiles, Publication
from web2gpt.fetch.resolver import Served
from web2gpt.fetch.urllist import UrlList
from web2gpt.io.progress import ProgressLine
from web2gpt.io.work import WorkFolder


def fetch_shard(files: FetchFiles, settings: Fetch, serve: ServeFolder) -> None:
    """Fetch a shard's URLs, or what an earlier try left, and publish archive and outcomes."""
    check_contact(settings)
    urls = UrlList(files.urls)
    decides = settings.model_dump(mode="json", exclude=set(PACE))
    job = {"stage": "fetch", "version": VERSIONS["fetch"], "urls": urls.content, **decides}
    with WorkFolder(files.work, job) as work:
        if work.is_published(files.outputs):
            return
        start = time.monotonic()
        with Journal(work.path / "journal", len(urls)) as journal:
            asyncio.run(_crawl(urls, journal, settings, work, serve))
            publication = Publication(files, urls, journal, settings)
            publication.publish(work, time.monotonic() - start)
    print(publication.statistics.summary(), flush=True)


def check_contact(settings: Fetch) -> None:
    """Raise ``ConfigError`` for a crawl of real hosts that does not say whose it is."""
    if settings.serve is None and not settings.contact:
        raise ConfigError(
            "fetch.contact: a crawl of real hosts needs an e-mail address or a page that site "
            "owners can turn to, such as --contact crawler@example.org"
        )
    if settings.serve is not None and not Path(settings.serve).is_dir():
        raise InputError(f"{settings.serve}: no such folder; fetch.serve names a folder of sites.")


async def _crawl(
    urls: UrlList, journal: Journal, settings: Fetch, work: WorkFolder, serve: ServeFolder
) -> None:
    name = f"fetch {urls.path.name.partition('.')[0]}"
    with ProgressLine(name, unit="URLs", total=len(urls)) as progress:
        progress.advance(int(journal.done.sum() + (~urls.readable).sum()))
        async with _served(settings, serve) as served:
            await Crawl(urls, journal, settings, progress).run(work, served)


@asynccontextmanager
async def _served(settings: Fetch, serve: ServeFolder) -> AsyncIterator[Served | None]:
    if settings.serve is None:
        yield None
        return
    async with serve(Path(settings.serve)) as (hosts, address, port):
        yield Served(hosts, address, port)
