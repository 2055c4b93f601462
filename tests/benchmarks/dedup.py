"""How fast duplicates are found, and how many: beside datasketch, datatrove and text-dedup.

    python tests/benchmarks/dedup.py --text FOLDER [--datatrove PYTHON] [--text-dedup PYTHON]
    python tests/benchmarks/dedup.py --text FOLDER --million 1000000

The first compares, in one run: signatures with datasketch's bulk call (given ready shingles), and
the whole stage with the peers' pipelines, whose Pythons are given; each figure is the median of
``--rounds``. The second runs the commands of the workflow on one corpus, two at a time, and tells
seconds and memory of each step. Prints a table, and JSON as the last line.
"""

import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))

from datasketch import MinHash
from tests.benchmarks.dedup_corpus import Corpus, identifier, words_of
from tests.benchmarks.dedup_million import deduplicate_by_commands
from tests.dedup.corpora import deduplicate_shards, jaccard

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.bands import Bands
from web2gpt.dedup.minhash import Permutations
from web2gpt.dedup.shingles import Shingler
from web2gpt.dedup.signatures import compute_signatures
from web2gpt.dedup.text import normalise

PEERS = Path(__file__).parent / "peers"
CLASSES = (0.8, 0.85, 0.9, 0.95)
Row = dict[str, Any]


def main(
    *,
    text: Annotated[Path | None, typer.Option(help="folder of HTML or text files")] = None,
    documents: Annotated[int, typer.Option(help="documents for the comparison")] = 1000,
    rounds: Annotated[int, typer.Option(help="runs of which the median counts")] = 5,
    datatrove: Annotated[Path | None, typer.Option(help="Python that has datatrove")] = None,
    text_dedup: Annotated[Path | None, typer.Option(help="Python that has text-dedup")] = None,
    million: Annotated[int, typer.Option(help="documents for the large run; 0: none")] = 0,
    work: Annotated[Path | None, typer.Option(help="folder to leave all files in")] = None,
) -> None:
    words = words_of(text)
    with tempfile.TemporaryDirectory() as name:
        folder = work or Path(name)
        if million:
            rows = deduplicate_by_commands(Corpus(words, million), folder)
        else:
            rows = [*signatures(words, documents, rounds, folder)]
            rows += pipelines(Corpus(words, documents), rounds, folder, datatrove, text_dedup)
    for row in rows:
        print(*(f"{name} {_shown(value)}" for name, value in row.items()), sep="  ")
    print(json.dumps(rows))


def _shown(value: Any) -> str:
    return f"{value:,.3g}" if isinstance(value, float) and value < 100 else (
        f"{value:,.0f}" if isinstance(value, float | int) else str(value)
    )  # fmt: skip


# Signatures


def signatures(words: list[str], count: int, rounds: int, folder: Path) -> list[Row]:
    """Documents a second of one core: our kernels, our whole step, and datasketch's bulk call."""
    corpus = Corpus(words, count)
    texts = list(corpus.texts())
    shards = Corpus(words, count).write(folder / "signatures", 1)
    shingler, permutations = Shingler("words", 5), Permutations.of(128)
    shingles = [shingler.shingles_of(normalise(text)) for text in texts]

    def ours() -> None:
        hashes, counts = shingler.hash_all([normalise(text) for text in texts])
        permutations.signatures((hashes >> np.uint64(32)).astype(np.uint32), counts)

    def step() -> None:
        number = time.monotonic_ns()
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            compute_signatures(
                shards[0], folder / f"{number}.parquet", folder / f"{number}", Dedup()
            )

    def theirs() -> None:
        MinHash.bulk(shingles, num_perm=128, scheme="affine32")

    rates = _interleaved({"kernels": ours, "step": step, "datasketch": theirs}, count, rounds)
    return [
        {
            "what": f"signatures, {name}",
            "documents/s": rates[name],
            "times datasketch": rates[name] / rates["datasketch"],
        }
        for name in rates
    ]


def _interleaved(runs: dict[str, Callable[[], None]], count: int, rounds: int) -> dict[str, float]:
    """Documents a CPU second, the runs in turn so that all meet the same weather; medians."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    return {name: count / statistics.median(found) for name, found in seconds.items()}


# Whole pipelines


def pipelines(
    corpus: Corpus, rounds: int, folder: Path, datatrove: Path | None, text_dedup: Path | None
) -> list[Row]:
    """Documents a core second from documents to kept documents, and recall by similarity."""
    shards = corpus.write(folder / "shared" / "documents", 2)
    lines = _plain(Corpus(corpus.words, corpus.count), folder / "documents.jsonl")
    texts = list(Corpus(corpus.words, corpus.count).texts())
    alike = [
        (pair.copy, pair.original, jaccard(texts[pair.copy], texts[pair.original]))
        for pair in corpus.planted
    ]
    few = {"false_positive_weight": 0.05, "false_negative_weight": 0.95}
    runs: dict[str, Callable[[Path], Row]] = {}
    for settings in (Dedup(), Dedup.model_validate(few)):
        name = f"web2gpt, {_bands(settings)}"
        runs[name] = lambda work, settings=settings: _ours(shards, work, settings)
    if datatrove:
        for bands, rows in ((14, 9), (14, 8)):
            script = [datatrove, PEERS / "datatrove_minhash.py", shards[0].parent]
            name = f"datatrove, {bands} x {rows}" + (" (its default)" if rows == 8 else "")
            runs[name] = lambda work, s=script, b=bands, r=rows: _peer([*s, work, b, r])
    if text_dedup:
        script = [text_dedup, PEERS / "text_dedup_minhash.py", lines]
        runs["text-dedup, 14 x 9"] = lambda work: _peer([*script, work, 14, 9, 0.8])
    found: dict[str, list[Row]] = defaultdict(list)
    for number in range(rounds):
        for name, run in runs.items():
            if number and name.endswith("(its default)"):
                continue  # for its recall
            row = run(folder / f"{number}-{name.replace(' ', '')}")
            found[name].append(row)
            rate = corpus.count / row["cpu"]
            print(f"round {number}: {name}: {rate:,.0f} documents/s", file=sys.stderr, flush=True)
    return [
        {
            "what": name,
            "documents/s a core": corpus.count / statistics.median(row["cpu"] for row in rows),
            **_quality(alike, set(rows[0]["kept"])),
        }
        for name, rows in found.items()
    ]


def _bands(settings: Dedup) -> str:
    bands = Bands.of(settings)
    return f"{bands.count} x {bands.rows}" + (" (default)" if settings == Dedup() else "")


def _plain(corpus: Corpus, path: Path) -> Path:
    """The same documents as one plain file, for peers that read no zstd."""
    with path.open("w") as file:
        for number, text in enumerate(corpus.texts()):
            file.write(json.dumps({"id": identifier(number), "text": text}) + "\n")
    return path


def _ours(shards: list[Path], work: Path, settings: Dedup) -> Row:
    start = time.process_time()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        outcome = deduplicate_shards(work, shards, settings)
    return {"cpu": time.process_time() - start, "kept": outcome.kept}


def _peer(command: list[Any]) -> Row:
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{command[1]} failed:\n{done.stderr[-3000:]}")
    result: Row = json.loads(done.stdout.splitlines()[-1])
    return result


def _quality(alike: list[tuple[int, int, float]], kept: set[str]) -> Row:
    """Share of the planted pairs of which one was removed, by exact similarity; and of the copies
    below the threshold the share that was removed all the same."""
    found: dict[float, list[bool]] = defaultdict(list)
    for copy, original, similarity in alike:
        gone = identifier(copy) not in kept or identifier(original) not in kept
        name = max((low for low in CLASSES if similarity >= low), default=0.0)
        found[name].append(gone)
    everything = [gone for low in CLASSES for gone in found[low]]
    shares = {f"from {low}": float(np.mean(found[low])) for low in CLASSES}
    wrong = float(np.mean(found[0.0]))
    return {"recall": float(np.mean(everything)), **shares, "below": wrong}


if __name__ == "__main__":
    typer.run(main)
