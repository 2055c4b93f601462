"""A seeded shuffle of more documents than memory holds.

Documents are dealt to files at random; a file that is small enough is shuffled in memory, a larger
one is dealt again. The order is uniform over all orders, for files are dealt to by independent
draws and each is shuffled well (P. Sanders, Random permutations on distributed, external and
hierarchical memory, 1998). It depends on the seed, the documents' order and the number of files
alone.
"""

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import orjson
import zstandard

from web2gpt.io.compression import open_compressed
from web2gpt.io.shards import Document

FILE_BYTES = 32 << 20  # JSON lines that are shuffled in memory
BUFFER = 1 << 18  # JSON lines of each file that wait to be compressed
MOST_FILES = 64
RATIO = 4  # of documents to their compressed form, about


def files_needed(size: int) -> int:
    """Files to deal to, for documents of ``size`` bytes of JSON lines."""
    return min(MOST_FILES, max(1, -(-size // FILE_BYTES)))


def shuffled(
    documents: Iterable[Document], folder: Path, files: int, seed: int
) -> Iterator[Document]:
    """The documents in random order; ``folder`` holds all of them meanwhile, compressed."""
    draw = random.Random(f"{seed} {files}")
    lines = (orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE) for document in documents)
    for line in _shuffle(lines, folder / "deal", files, draw):
        yield orjson.loads(line)


def _shuffle(
    lines: Iterable[bytes], prefix: Path, files: int, draw: random.Random
) -> Iterator[bytes]:
    piles = [_Pile(prefix.with_name(f"{prefix.name}-{number:02d}")) for number in range(files)]
    for line in lines:
        draw.choice(piles).add(line)
    for pile in piles:
        pile.close()
    for pile in piles:
        if pile.bytes > FILE_BYTES and pile.count > 1:
            with pile.open() as file:
                yield from _shuffle(
                    file, pile.path.with_suffix(""), max(2, files_needed(pile.bytes)), draw
                )
        else:
            with pile.open() as file:
                held = file.readlines()
            draw.shuffle(held)
            yield from held
        pile.path.unlink()


class _Pile:
    """A file of lines, written in small compressed frames."""

    def __init__(self, path: Path):
        self.path = path.with_suffix(".zst")
        self.count = self.bytes = 0
        self._file = self.path.open("wb")
        self._buffer = bytearray()

    def add(self, line: bytes) -> None:
        self.count += 1
        self.bytes += len(line)
        self._buffer += line
        if len(self._buffer) >= BUFFER:
            self._write()

    def close(self) -> None:
        self._write()
        self._file.close()

    def open(self) -> IO[bytes]:
        return open_compressed(self.path)

    def _write(self) -> None:
        self._file.write(zstandard.compress(self._buffer, level=1))
        self._buffer.clear()
