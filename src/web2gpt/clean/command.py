"""``web2gpt clean`` and ``web2gpt decontaminate``."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.config.clean import Clean, Decontaminate
from web2gpt.config.flags import with_settings
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import ConfigError, InputError

Output = Annotated[Path, typer.Option(help="documents that are kept, .jsonl.zst")]
Rejected = Annotated[Path, typer.Option(help="rejected documents, .jsonl.zst")]
Stats = Annotated[Path, typer.Option(help="statistics, JSON")]
Work = Annotated[Path, typer.Option(help="work folder of this job")]
RejectedText = Annotated[bool, typer.Option(help="keep the text of rejected documents")]

decontaminate = typer.Typer(
    help="Leave out text that evaluation sets contain: count, then cut.", no_args_is_help=True
)


@with_settings(Clean)
def clean(
    *,
    documents: Annotated[Path, typer.Option(help="documents, .jsonl.zst")],
    output: Output,
    rejected: Rejected,
    stats: Stats,
    work: Work,
    rejected_text: RejectedText = False,
    settings: Clean,
) -> None:
    """Mend broken text; drop short, foreign and useless documents.

    Example: web2gpt clean --documents a.jsonl.zst --output clean/a.jsonl.zst --rejected
    rejected/a.jsonl.zst --stats stats/a.json --work work/a --languages en --min-tokens 128
    """
    from web2gpt.clean.documents import clean_documents
    from web2gpt.io.stage import ShardFiles, ShardJob
    from web2gpt.io.work import file_states

    counter = [Path(settings.token_counter)] if settings.token_counter else []
    decides = {
        "version": VERSIONS["clean"],
        "settings": settings.model_dump(mode="json"),
        "token_counter": file_states(counter),
    }
    files = ShardFiles((documents,), output, rejected, stats, work)
    with ShardJob("clean", "documents", files, decides, rejected_text=rejected_text) as job:
        if job.needed:
            clean_documents(job, settings)


@decontaminate.command("count")
@with_settings(Decontaminate)
def decontaminate_count(
    *,
    documents: Annotated[list[Path], typer.Option(help="documents; once for each shard")],
    output: Annotated[Path, typer.Option(help="n-grams and their counts, parquet")],
    work: Work,
    settings: Decontaminate,
) -> None:
    """Count the evaluation sets' n-grams over the whole corpus.

    Example: web2gpt decontaminate count --documents a.jsonl.zst --documents b.jsonl.zst
    --against lambada.jsonl --output ngrams.parquet --work work/count
    """
    from web2gpt.clean.contamination import count_ngrams, write_ngrams
    from web2gpt.io.work import WorkFolder, file_states

    if not settings.against:
        raise ConfigError(
            "decontaminate.against: names no evaluation set; give --against FILE, once for each."
        )
    inputs = [*documents, *map(Path, settings.against)]
    _check_files(inputs)
    decides = {
        "stage": "decontaminate_count",
        "version": VERSIONS["decontaminate"],
        "settings": settings.model_dump(mode="json"),
        "inputs": [*map(str, inputs), *file_states(inputs)],
    }
    with WorkFolder(work, decides) as folder:
        if not folder.is_published([output]):
            table = count_ngrams(documents, settings, folder.path)
            write_ngrams(table, folder.path / output.name)
            folder.publish({folder.path / output.name: output})
            found = sum(count > 0 for count in table["count"].to_pylist())
            print(f"decontaminate: {len(table):,} n-grams, {found:,} of them in the corpus")


@decontaminate.command("add")
def decontaminate_add(
    *,
    counts: Annotated[list[Path], typer.Option(help="what `count` wrote; once for each shard")],
    output: Annotated[Path, typer.Option(help="n-grams and their counts, parquet")],
    work: Work,
) -> None:
    """Add up counts of the same n-grams in several shards.

    Example: web2gpt decontaminate add --counts a.parquet --counts b.parquet
    --output ngrams.parquet --work work/add
    """
    from web2gpt.clean.contamination import add_counts, write_ngrams
    from web2gpt.io.work import WorkFolder, file_states

    _check_files(counts)
    decides = {
        "stage": "decontaminate_add",
        "version": VERSIONS["decontaminate"],
        "inputs": file_states(counts),
    }
    with WorkFolder(work, decides) as folder:
        if not folder.is_published([output]):
            write_ngrams(add_counts(counts), folder.path / output.name)
            folder.publish({folder.path / output.name: output})


@decontaminate.command("report")
@with_settings(Decontaminate)
def decontaminate_report(
    *,
    ngrams: Annotated[Path, typer.Option(help="what `decontaminate count` wrote")],
    output: Annotated[Path, typer.Option(help="what was hit, JSON")],
    settings: Decontaminate,
) -> None:
    """Tell which evaluation sets the corpus holds how much of, and the phrases found most often.

    Example: web2gpt decontaminate report --ngrams ngrams.parquet --output report.json
    """
    from web2gpt.clean.hits import report_hits
    from web2gpt.io.atomic import write_json

    _check_files([ngrams])
    report = report_hits(ngrams, settings.common)
    write_json(output, report)
    for name, found in report["sets"].items():
        print(
            f"{name}: {found['ngrams']:,} n-grams, {found['in_corpus']:,} of them in the corpus: "
            f"{found['cut']:,} cut out, {found['common']:,} as common phrases left"
        )


@decontaminate.command("cut")
@with_settings(Decontaminate)
def decontaminate_cut(
    *,
    documents: Annotated[Path, typer.Option(help="documents, .jsonl.zst")],
    ngrams: Annotated[Path, typer.Option(help="what `decontaminate count` wrote")],
    output: Output,
    rejected: Rejected,
    stats: Stats,
    work: Work,
    rejected_text: RejectedText = False,
    settings: Decontaminate,
) -> None:
    """Cut the evaluation sets' n-grams out of one shard.

    Example: web2gpt decontaminate cut --documents a.jsonl.zst --ngrams ngrams.parquet --output
    b.jsonl.zst --rejected rejected.jsonl.zst --stats stats.json --work work/cut
    """
    from web2gpt.clean.contamination import cut_documents
    from web2gpt.io.stage import ShardFiles, ShardJob
    from web2gpt.io.work import file_states

    _check_files([ngrams])
    decides = {
        "version": VERSIONS["decontaminate"],
        "settings": settings.model_dump(mode="json"),
        "ngrams": file_states([ngrams]),
    }
    files = ShardFiles((documents,), output, rejected, stats, work)
    with ShardJob("decontaminate", "documents", files, decides, rejected_text=rejected_text) as job:
        if job.needed:
            cut_documents(job, ngrams, settings)


def _check_files(paths: list[Path]) -> None:
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: no such file; correct the path, or make it first.")
