"""A seeded shuffle of more documents than memory holds.

Documents are dealt to files at random, then each file is shuffled in memory: the order is uniform
over all orders if the files are dealt by independent draws and each is shuffled well (M. Sanders,
Random permutations on distributed, external and hierarchical memory, 1998). The order depends on
the seed and the documents' order alone.
"""

import random
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import orjson
import zstandard

from web2gpt.io.compression import open_compressed
from web2gpt.io.shards import Document

FILE_BYTES = 64 << 20  # JSON lines of a file, about: what is in memory at once
MOST_FILES = 512


def files_needed(size: int) -> int:
    """Files to deal to, for documents of ``size`` bytes of JSON lines."""
    return min(MOST_FILES, max(1, -(-size // FILE_BYTES)))


def shuffled(
    documents: Iterable[Document], folder: Path, files: int, seed: int
) -> Iterator[Document]:
    """The documents in random order; ``folder`` holds all of them meanwhile, compressed."""
    draw = random.Random(f"{seed} {files}")
    paths = [folder / f"deal-{number:03d}.jsonl.zst" for number in range(files)]
    with ExitStack() as stack:
        compressor = zstandard.ZstdCompressor(level=1)
        streams = [
            stack.enter_context(compressor.stream_writer(stack.enter_context(path.open("wb"))))
            for path in paths
        ]
        for document in documents:
            line = orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
            draw.choice(streams).write(line)
    for path in paths:
        with open_compressed(path) as file:
            lines = file.readlines()
        draw.shuffle(lines)
        yield from map(orjson.loads, lines)
        path.unlink()
