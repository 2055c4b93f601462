"""Commands ``tokenizer``, ``tokenize``, ``index``, and ``tokens`` to look at what they made."""

import os
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from web2gpt.config.flags import with_settings
from web2gpt.config.tokens import IndexRun, Tokenize, Tokenizer
from web2gpt.errors import ConfigError

app = typer.Typer(help="Look at indexed datasets and sample indices.", no_args_is_help=True)

Corpus = Annotated[Path, typer.Option("--corpus", help="corpus.jsonl.zst")]
Frames = Annotated[Path, typer.Option("--frames", help="index of the corpus's frames")]
TokenizerFile = Annotated[Path, typer.Option("--tokenizer", help="tokenizer.json")]
Work = Annotated[Path, typer.Option("--work", help="folder that a rerun resumes from")]
Workers = Annotated[int, typer.Option("--workers", min=0, help="threads; 0: one a core")]
AsJson = Annotated[bool, typer.Option("--json", help="the same as JSON")]
Prefix = Annotated[Path, typer.Argument(help="prefix of a .bin/.idx pair, or one of the two")]


@with_settings(Tokenizer)
def tokenizer(
    *,
    corpus: Annotated[Path | None, typer.Option(help="corpus.jsonl.zst; to train on")] = None,
    frames: Annotated[Path | None, typer.Option(help="index of the corpus's frames")] = None,
    output: Annotated[Path, typer.Option(help="tokenizer.json to write")],
    manifest: Annotated[Path, typer.Option(help="its manifest.json to write")],
    work: Work,
    settings: Tokenizer,
) -> None:
    """Train a byte-level BPE tokenizer on the corpus, or take the one that is given.

    Example: web2gpt tokenizer --corpus corpus.jsonl.zst --frames corpus.frames.parquet
    --output tokenizer.json --manifest manifest.json --work work/tokenizer --vocab-size 32000
    """
    from web2gpt.tokens.tokenizer import make_tokenizer

    make_tokenizer(
        corpus, frames, output=output, manifest=manifest, work_folder=work, settings=settings
    )


@with_settings(Tokenize)
def tokenize(
    *,
    corpus: Corpus,
    frames: Frames,
    tokenizer: TokenizerFile,
    bin: Annotated[Path, typer.Option("--bin", help=".bin to write")],
    idx: Annotated[Path, typer.Option(help=".idx to write")],
    documents: Annotated[Path, typer.Option(help="documents.parquet to write")],
    rejected: Annotated[Path, typer.Option(help="rejected records to write")],
    stats: Annotated[Path, typer.Option(help="statistics to write")],
    work: Work,
    rejected_text: Annotated[bool, typer.Option(help="keep rejected texts too")] = False,
    key: Annotated[str, typer.Option(help="field of a document that holds the text")] = "text",
    workers: Workers = 0,
    settings: Tokenize,
) -> None:
    """Turn the corpus into Megatron's indexed dataset of token ids.

    Example: web2gpt tokenize --corpus corpus.jsonl.zst --frames corpus.frames.parquet
    --tokenizer tokenizer.json --bin text.bin --idx text.idx --documents documents.parquet
    --rejected rejected.jsonl.zst --stats stats.json --work work/tokenize
    """
    threads = workers or len(os.sched_getaffinity(0))
    os.environ.setdefault("RAYON_NUM_THREADS", str(threads))  # before the encoders start theirs
    from web2gpt.tokens.tokenize import TokenizeFiles
    from web2gpt.tokens.tokenize import tokenize as run

    files = TokenizeFiles(corpus, frames, tokenizer, bin, idx, documents, rejected, stats, work)
    run(files, settings, key=key, threads=threads, rejected_text=rejected_text)


@with_settings(IndexRun)
def index(
    *,
    tokens: Annotated[
        list[str], typer.Option("--tokens", help="NAME=PREFIX of a .bin/.idx pair; repeatable")
    ],
    documents: Annotated[
        list[str] | None,
        typer.Option(help="documents.parquet of the first dataset, or NAME=FILE; repeatable"),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(help="NAME=SHARE of a source in training; none: by size; repeatable"),
    ] = None,
    tokenizer: TokenizerFile,
    output: Annotated[Path, typer.Option(help="folder for the arrays and manifest.json")],
    work: Work,
    settings: IndexRun,
) -> None:
    """Decide which documents are trained on, and in which order.

    Example: web2gpt index --tokens web=text --documents documents.parquet
    --tokenizer tokenizer.json --output index --work work/index --split 949,50,1
    """
    from web2gpt.tokens.index import IndexInputs, build_index
    from web2gpt.tokens.indexed import prefix_of

    prefixes = [(name, prefix_of(Path(path))) for name, path in _pairs("--tokens", tokens)]
    first = prefixes[0][0]
    named = [text if "=" in text else f"{first}={text}" for text in documents or ()]
    inputs = IndexInputs(
        prefixes,
        {name: Path(path) for name, path in _pairs("--documents", named)},
        {name: _number(name, text) for name, text in _pairs("--weight", weight or ())},
        tokenizer,
    )
    build_index(inputs, output, work, settings)


@app.command()
def verify(
    prefixes: Annotated[list[Path], typer.Argument(help="prefixes of .bin/.idx pairs")],
    tokenizer: Annotated[Path | None, typer.Option(help="tokenizer.json to hold ids to")] = None,
    json: AsJson = False,
) -> None:
    """Check .bin/.idx pairs, of any tool; the first fault ends it.

    Example: web2gpt tokens verify text other.bin --tokenizer tokenizer.json
    """
    from web2gpt.tokens.show import sizes_line, verified_sizes

    found = verified_sizes(prefixes, tokenizer)
    if json:
        _print_json(found)
    else:
        for sizes in found:
            print(f"{sizes['prefix']}: sound; {sizes_line(sizes)}")


@app.command()
def merge(
    prefixes: Annotated[list[Path], typer.Argument(help="prefixes of .bin/.idx pairs, in order")],
    output: Annotated[Path, typer.Option(help="prefix of the pair to write")],
    tokenizer: Annotated[Path | None, typer.Option(help="tokenizer.json to hold ids to")] = None,
    documents: Annotated[
        list[Path] | None, typer.Option(help="documents.parquet, once for each pair")
    ] = None,
    documents_output: Annotated[
        Path | None, typer.Option(help="documents.parquet to write")
    ] = None,
) -> None:
    """Join .bin/.idx pairs, of any tool, into one; each is verified first.

    Example: web2gpt tokens merge a b --output both --tokenizer tokenizer.json
    """
    from web2gpt.tokens.merge import merge_datasets

    merge_datasets(
        prefixes,
        output,
        tokenizer=tokenizer,
        documents=documents or (),
        documents_output=documents_output,
    )


@app.command()
def show(
    prefix: Prefix,
    *,
    tokenizer: Annotated[Path | None, typer.Option(help="tokenizer.json to decode with")] = None,
    documents: Annotated[Path | None, typer.Option(help="documents.parquet")] = None,
    first: Annotated[int, typer.Option(min=0, help="first document to show")] = 0,
    count: Annotated[int, typer.Option(min=0, help="documents to show")] = 3,
    offset: Annotated[int, typer.Option(min=0, help="first token of each")] = 0,
    length: Annotated[int, typer.Option(min=0, help="tokens of each")] = 64,
    json: AsJson = False,
) -> None:
    """Print size and lengths of a .bin/.idx pair, and some documents, decoded.

    Example: web2gpt tokens show text --tokenizer tokenizer.json --first 7 --count 2
    """
    from web2gpt.tokens.show import contents, contents_lines

    found = contents(
        prefix,
        tokenizer=tokenizer,
        documents=documents,
        chosen=range(first, first + count),
        offset=offset,
        length=length,
    )
    if json:
        _print_json(found)
    else:
        print("\n".join(contents_lines(found)))


@app.command()
def trace(
    *,
    index: Annotated[Path, typer.Option(help="manifest.json of the index")],
    step: Annotated[int, typer.Option(min=1, help="optimizer step, from 1")],
    global_batch_size: Annotated[
        int | None, typer.Option(min=1, help="sequences a step, if all steps have as many")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="the run's config.yaml, which says the same of any run")
    ] = None,
    documents: Annotated[
        list[str] | None,
        typer.Option(help="documents.parquet of the first dataset, or NAME=FILE; repeatable"),
    ] = None,
    split: Annotated[str, typer.Option(help="train, valid, test, or valid-NAME")] = "train",
    json: AsJson = False,
) -> None:
    """Print the documents that a training step saw, with ids and URLs.

    Example: web2gpt tokens trace --index index/manifest.json --step 1000 --config config.yaml
    --documents documents.parquet
    """
    from web2gpt.tokens.trace import sample_lines, samples_of_step, traced_samples

    named = [text if "=" in text else f"={text}" for text in documents or ()]
    files = {name: Path(path) for name, path in _pairs("--documents", named)}
    samples = samples_of_step(step, global_batch_size, config)
    traced = traced_samples(index, split, samples, files)
    if json:
        _print_json({"step": step, "split": split, "samples": list(traced)})
        return
    print(f"step {step:,}: samples {samples[0]:,} to {samples[-1]:,}")
    for sample in traced:
        print("\n".join(sample_lines(sample)))


def _print_json(value: Any) -> None:
    print(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def _pairs(flag: str, texts: list[str] | tuple[()]) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in texts]
    for name, equals, value in pairs:
        if not equals or not value:
            raise ConfigError(f"{flag} {name}: give it as NAME=VALUE, such as {flag} web=...")
    return [(name, value) for name, _, value in pairs]


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ConfigError(f"--weight {name}={text}: give a share above 0.")
    return value
