"""``web2gpt fetch``: fetch one shard's URLs into a WARC file."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated

import typer

from web2gpt.config.fetch import Fetch
from web2gpt.config.flags import with_settings

ServedFolder = AbstractAsyncContextManager[tuple[frozenset[str], str, int]]
"""A folder of sites served while the block runs; gives host names, address and port."""
ServeFolder = Callable[[Path], ServedFolder]


def fetch_command(serve: ServeFolder) -> Callable[..., None]:
    """The command, given what serves ``fetch.serve``."""

    @with_settings(Fetch)
    def fetch(
        *,
        urls: Annotated[Path, typer.Option(help="the shard's list: a URL, a tab, its source")],
        warc: Annotated[Path, typer.Option(help="archive of requests and responses, .warc.gz")],
        outcomes: Annotated[Path, typer.Option(help="one outcome for each URL, .jsonl.zst")],
        rejected: Annotated[Path, typer.Option(help="the URLs not kept and why, .jsonl.zst")],
        stats: Annotated[Path, typer.Option(help="statistics, .json")],
        work: Annotated[Path, typer.Option(help="work folder; a killed fetch goes on from it")],
        settings: Fetch,
    ) -> None:
        """Fetch a shard's URLs, politely, into a WARC file; goes on where it was stopped.

        Example: web2gpt fetch --urls urls/urls-0000.tsv --warc a.warc.gz
        --outcomes a.outcomes.jsonl.zst --rejected a.jsonl.zst --stats a.json --work work/a
        --contact crawler@example.org
        """
        from web2gpt.fetch.publish import FetchFiles
        from web2gpt.fetch.stage import fetch_shard

        files = FetchFiles(urls, warc, outcomes, rejected, stats, work)
        fetch_shard(files, settings, serve)

    return fetch
