"""Merging shards into the corpus: megabytes of text a second, as a copy and with a shuffle.

Beside it the rate at which the shards' frames can be read at all, decompressed and parsed: what
checking each document costs. Documents are of random words, in shards as the stages write them.

    python tests/benchmarks/merge.py --megabytes 200
"""

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from web2gpt.config.merge import Merge
from web2gpt.io.shards import JsonlWriter, read_jsonl
from web2gpt.io.stage import ShardFiles
from web2gpt.merge.corpus import merge_documents
from web2gpt.web.ids import document_id

SHARDS = 4


def main() -> None:
    """Print a table, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200, help="of text, about")
    parser.add_argument("--rounds", type=int, default=3, help="the fastest counts")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = make_shards(folder, given.megabytes * 1_000_000)
        paths = tuple(sorted(folder.glob("*.jsonl.zst")))
        ways = {"read and parse": None, "copy": Merge(), "held out 5%": Merge(held_out=0.05),
                "shuffle": Merge(shuffle=True)}  # fmt: skip
        results = {}
        for way, settings in ways.items():
            seconds = min(timed(paths, folder / "out", settings) for _ in range(given.rounds))
            results[way] = round(size / 1e6 / seconds, 1)
            print(f"{way:15s} {results[way]:8.1f} MB of text a second")
        print(json.dumps(results))


def make_shards(folder: Path, size: int) -> int:
    """Write the shards; the size of their text in bytes."""
    draw = random.Random(1)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(20_000)]
    total = 0
    for shard in range(SHARDS):
        with JsonlWriter(folder / f"{shard}.jsonl.zst") as writer:
            while total < size * (shard + 1) / SHARDS:
                text = " ".join(draw.choices(words, k=draw.randint(100, 1000)))
                url = f"http://{shard}.example/{writer.count}"
                writer.write({"id": document_id("b", url), "url": url, "text": text, "source": "b"})
                total += len(text)
    return total


def timed(paths: tuple[Path, ...], out: Path, settings: Merge | None) -> float:
    names = ("corpus", "rejected", "stats", "work", "frames")
    files = [out / name for name in names]
    for path in files:
        if path.is_file():
            path.unlink()
    start = time.perf_counter()
    if settings is None:
        sum(1 for path in paths for _ in read_jsonl(path))
    else:
        merge_documents(ShardFiles(paths, *files), settings, rejected_text=False)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
