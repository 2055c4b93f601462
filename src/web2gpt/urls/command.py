"""``web2gpt urls``: from lists of URLs to the ones worth fetching."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.config.flags import with_settings
from web2gpt.config.urls import Urls


@with_settings(Urls)
def urls(
    *,
    source: Annotated[
        list[str], typer.Option(help="NAME=PATH, a file or folder of URLs; may be repeated")
    ],
    output: Annotated[Path, typer.Option(help="folder for clean.txt and the shards")],
    rejected: Annotated[Path, typer.Option(help="file for the URLs left out, with the rule")],
    stats: Annotated[Path, typer.Option(help="file for the counts")],
    work: Annotated[Path, typer.Option(help="folder for what the stage keeps while it runs")],
    settings: Urls,
    workers: Annotated[
        int, typer.Option(min=1, help="processes that judge URLs; no result depends on it")
    ] = 1,
    shards: Annotated[int, typer.Option(min=1, help="number of shards, by domain")] = 1,
) -> None:
    """Keep the URLs worth fetching: well-formed, not blacklisted, once each; in shards.

    Example: web2gpt urls --source news=lists/ --shards 4 --output urls
    --rejected rejected.jsonl.zst --stats urls.json --work work/urls
    """
    from web2gpt.urls.inputs import parse_sources
    from web2gpt.urls.selection import Outputs, select_urls

    files = parse_sources(source)
    select_urls(files, Outputs(output, rejected, stats, work), shards, settings, workers)
