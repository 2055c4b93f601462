"""``web2gpt dedup``: near-duplicates, in five commands, each a step that can be run again.

``signatures`` and ``remove`` are jobs of one shard, ``buckets`` of some of the bands; ``pairs`` and
``clusters`` are one job over all shards.
"""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.config.dedup import Dedup
from web2gpt.config.flags import with_settings

app = typer.Typer(
    name="dedup", help="Find and remove near-duplicate documents.", no_args_is_help=True
)

Work = Annotated[Path, typer.Option(help="folder to resume from")]
Signatures = Annotated[list[Path], typer.Option(help="signatures of a shard; once for each shard")]
Documents = Annotated[
    list[Path], typer.Option(help="documents of a shard; in the order of --signatures")
]


@app.command()
@with_settings(Dedup)
def signatures(
    *,
    documents: Annotated[Path, typer.Option(help="shard of documents, .jsonl.zst")],
    output: Annotated[Path, typer.Option(help="signatures, .parquet")],
    work: Work,
    settings: Dedup,
) -> None:
    """Compute the MinHash signatures of one shard's documents.

    Example: web2gpt dedup signatures --documents a.jsonl.zst --output a.parquet --work work/a
    """
    from web2gpt.dedup.signatures import compute_signatures

    compute_signatures(documents, output, work, settings)


@app.command()
@with_settings(Dedup)
def buckets(
    *,
    signatures: Signatures,
    output: Annotated[Path, typer.Option(help="buckets of this part's bands, .parquet")],
    part: Annotated[int, typer.Option(help="which of --jobs jobs this is, from 0")] = 0,
    work: Work,
    settings: Dedup,
) -> None:
    """Find the documents whose signatures are equal in a band.

    Example: web2gpt dedup buckets --signatures a.parquet --signatures b.parquet
    --output buckets.parquet --work work/buckets
    """
    from web2gpt.dedup.buckets import find_buckets

    find_buckets(signatures, output, work, settings, part)


@app.command()
@with_settings(Dedup)
def pairs(
    *,
    signatures: Signatures,
    documents: Documents,
    buckets: Annotated[list[Path], typer.Option(help="buckets; once for each part")],
    output: Annotated[Path, typer.Option(help="verified pairs, .parquet")],
    work: Work,
    settings: Dedup,
) -> None:
    """Verify the similarity of documents that share a bucket.

    Example: web2gpt dedup pairs --signatures a.parquet --documents a.jsonl.zst
    --buckets buckets.parquet --output pairs.parquet --work work/pairs
    """
    from web2gpt.dedup.corpus import Shards
    from web2gpt.dedup.pairs import find_pairs

    find_pairs(Shards.of(signatures, documents), buckets, output, work, settings)


@app.command()
@with_settings(Dedup)
def clusters(
    *,
    signatures: Signatures,
    documents: Documents,
    pairs: Annotated[Path, typer.Option(help="verified pairs")],
    output: Annotated[Path, typer.Option(help="clusters.parquet")],
    work: Work,
    settings: Dedup,
) -> None:
    """Choose which of the near-duplicates are kept.

    Example: web2gpt dedup clusters --signatures a.parquet --documents a.jsonl.zst
    --pairs pairs.parquet --output clusters.parquet --work work/clusters
    """
    from web2gpt.dedup.clusters import find_clusters
    from web2gpt.dedup.corpus import Shards

    find_clusters(Shards.of(signatures, documents), pairs, output, work, settings)


@app.command()
def remove(
    *,
    documents: Annotated[Path, typer.Option(help="shard of documents, .jsonl.zst")],
    clusters: Annotated[Path, typer.Option(help="clusters.parquet")],
    output: Annotated[Path, typer.Option(help="documents that are kept, .jsonl.zst")],
    rejected: Annotated[Path, typer.Option(help="records of the removed ones, .jsonl.zst")],
    stats: Annotated[Path, typer.Option(help="statistics, JSON")],
    work: Work,
    rejected_text: Annotated[
        bool, typer.Option(help="keep the text of rejected documents too")
    ] = False,
) -> None:
    """Drop the near-duplicates from one shard.

    Example: web2gpt dedup remove --documents a.jsonl.zst --clusters clusters.parquet
    --output kept/a.jsonl.zst --rejected rejected/a.jsonl.zst --stats a.json --work work/remove-a
    """
    from web2gpt.dedup.remove import remove_duplicates
    from web2gpt.io.stage import ShardFiles

    files = ShardFiles((documents,), output, rejected, stats, work)
    remove_duplicates(files, clusters, rejected_text=rejected_text)
