"""``web2gpt merge``: all shards into one corpus."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.config.flags import with_settings
from web2gpt.config.merge import Merge


@with_settings(Merge)
def merge(
    *,
    documents: Annotated[
        list[Path], typer.Option(help="shard of documents; once for each, in the corpus's order")
    ],
    corpus: Annotated[Path, typer.Option(help="corpus, .jsonl.zst of many frames")],
    frames: Annotated[Path, typer.Option(help="index of the frames, .parquet")],
    rejected: Annotated[Path, typer.Option(help="records left out, .jsonl.zst")],
    stats: Annotated[Path, typer.Option(help="statistics, JSON")],
    work: Annotated[Path, typer.Option(help="folder to resume from")],
    rejected_text: Annotated[
        bool, typer.Option(help="keep the text of rejected documents too")
    ] = False,
    settings: Merge,
) -> None:
    """Join all shards into one corpus that is read frame by frame.

    Example: web2gpt merge --documents a.jsonl.zst --documents b.jsonl.zst
    --corpus corpus.jsonl.zst --frames corpus.frames.parquet --rejected rejected.jsonl.zst
    --stats merge.json --work work/merge
    """
    from web2gpt.io.stage import ShardFiles
    from web2gpt.merge.corpus import merge_documents

    files = ShardFiles(tuple(documents), corpus, rejected, stats, work, frames)
    merge_documents(files, settings, rejected_text=rejected_text)
