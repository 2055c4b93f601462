"""``web2gpt extract``: from WARC files or JSON lines to documents."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from web2gpt.config.extract import ExtractRun
from web2gpt.config.flags import with_settings
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import ConfigError, InputError


class Kind(StrEnum):
    """What the input files are."""

    WARC = "warc"
    JSONL = "jsonl"


@with_settings(ExtractRun)
def extract(
    *,
    kind: Annotated[Kind, typer.Option(help="what the inputs are")],
    source: Annotated[
        str | None, typer.Option(help="source's name; our own WARCs carry it themselves")
    ] = None,
    input: Annotated[list[Path], typer.Option(help="WARC or JSONL file; once for each")],
    documents: Annotated[Path, typer.Option(help="documents, .jsonl.zst")],
    rejected: Annotated[Path, typer.Option(help="rejected pages or records, .jsonl.zst")],
    stats: Annotated[Path, typer.Option(help="statistics, JSON")],
    work: Annotated[Path, typer.Option(help="work folder of this shard")],
    workers: Annotated[
        int, typer.Option(min=1, help="processes that extract pages; no result depends on it")
    ] = 1,
    rejected_text: Annotated[bool, typer.Option(help="keep the text of rejected records")] = False,
    settings: ExtractRun,
) -> None:
    """Extract the main text of archived pages, or read the texts of JSON lines.

    Example: web2gpt extract --kind warc --source cc --input a.warc.gz --documents a.jsonl.zst
    --rejected a.rejected.jsonl.zst --stats a.json --work work/a --workers 4
    """
    from web2gpt.extract.archives import extract_archives
    from web2gpt.extract.lines import extract_lines
    from web2gpt.io.stage import ShardFiles, ShardJob

    _check_files(input)
    if kind is Kind.JSONL and source is None:
        raise ConfigError("--source: JSON lines do not say which source they are of; name one.")
    decides = {
        "version": VERSIONS["extract"],
        "kind": kind.value,
        "source": source,
        "settings": settings.model_dump(mode="json"),
    }
    files = ShardFiles(tuple(input), documents, rejected, stats, work)
    unit = "pages" if kind is Kind.WARC else "records"
    with ShardJob("extract", unit, files, decides, rejected_text=rejected_text) as job:
        if job.needed and kind is Kind.WARC:
            extract_archives(job, source, settings, workers)
        elif job.needed:
            extract_lines(job, source or "", settings.keys)


def _check_files(paths: list[Path]) -> None:
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: no such file; give WARC or JSONL files with --input.")
