"""What the line says while a crawl runs."""

import asyncio

from web2gpt.config.fetch import Fetch
from web2gpt.fetch.crawl import Crawl
from web2gpt.fetch.journal import Journal
from web2gpt.fetch.page import Fetched, Outcome
from web2gpt.fetch.places import Places
from web2gpt.fetch.urllist import UrlList


class Pages:
    """Stands for the fetcher: everything is kept at once."""

    async def fetch(self, listed):
        outcome = Outcome(listed.url, listed.source, "kept", 200, listed.url, 0, None, 0, 0)
        return Fetched(outcome, b"")


def test_it_names_outcomes_and_the_hosts_that_are_waited_for_longest(tmp_path):
    path = tmp_path / "urls-0000.tsv"
    path.write_text("http://site.test/1\tlist\nhttp://site.test/2\tlist\n")
    settings = Fetch(serve="a folder", patience=0.01)

    async def note():
        places = Places(8, settings.patience)
        for host in ("first.test", "second.test"):
            await places.take(host, was_slow=False)
            await asyncio.sleep(0.02)
        with Journal(tmp_path / "journal", 2) as journal:
            crawl = Crawl(UrlList(path), journal, settings)
            await crawl._pages(Pages(), iter([0, 1]))
            return crawl.note(places)

    said = asyncio.run(note())
    assert said.startswith("2 kept; slowest first.test ")
    assert ", second.test " in said
