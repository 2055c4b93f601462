"""Find duplicates and sort, in bounded memory, with files in the work folder.

Candidates are spread over ``BUCKETS`` files by a hash of their key, so that all with one key meet
in one file. A bucket's lines are built so that plain sorting puts the one to keep first among those
with its key; what is kept is written back in the order of URLs, and the buckets are merged.
Every field is free of tabs and of all that sorts before a tab: URLs have no control characters.
"""

import heapq
import shutil
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

BUCKETS = 64
BUFFER = 1 << 18  # bytes held back for each bucket while writing


class Candidate(NamedTuple):
    """A URL with what decides between duplicates: first ``rank``, then the URL, then its place."""

    key: str
    rank: int
    url: str
    source: int
    file: int
    line: int
    domain: str

    def encode(self) -> bytes:
        return (
            f"{self.key}\t{self.rank}\t{self.url}\t{self.source:04}\t{self.file:06}\t{self.line:012}"
            f"\t{self.domain}\n"
        ).encode()

    @classmethod
    def decode(cls, line: bytes) -> Self:
        key, rank, url, source, file, number, domain = line.decode().rstrip("\n").split("\t")
        return cls(key, int(rank), url, int(source), int(file), int(number), domain)


class Duplicate(NamedTuple):
    """A candidate left out, and the URL kept in its place."""

    candidate: Candidate
    kept: str


class Unique(NamedTuple):
    """A URL of the result."""

    url: str
    source: int
    domain: str


class Spill:
    """``with Spill(folder) as spill:`` add candidates, then ``duplicates()``, then ``unique()``."""

    def __init__(self, folder: Path):
        self._folder = folder

    def __enter__(self) -> Self:
        shutil.rmtree(self._folder, ignore_errors=True)  # a killed run's
        self._folder.mkdir(parents=True)
        self._files = [self._bucket(number).open("wb", BUFFER) for number in range(BUCKETS)]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files:
            file.close()
        shutil.rmtree(self._folder)

    def add(self, candidate: Candidate) -> None:
        bucket = zlib.crc32(candidate.key.encode()) % BUCKETS
        self._files[bucket].write(candidate.encode())

    def duplicates(self) -> Iterator[Duplicate]:
        """Every candidate but the best of each key; leaves the best ones to ``unique``."""
        for number, file in enumerate(self._files):
            file.close()
            lines = self._bucket(number).read_bytes().splitlines(keepends=True)
            lines.sort()
            kept: list[bytes] = []
            for is_first, line, first in _with_first(lines):
                if is_first:
                    kept.append(_unique_line(line))
                else:
                    yield Duplicate(Candidate.decode(line), Candidate.decode(first).url)
            kept.sort()
            self._bucket(number).write_bytes(b"".join(kept))

    def unique(self) -> Iterator[Unique]:
        """What is left after ``duplicates``, in the order of URLs."""
        files = [self._bucket(number).open("rb") for number in range(BUCKETS)]
        try:
            for line in heapq.merge(*files):
                url, source, domain = line.decode().rstrip("\n").split("\t")
                yield Unique(url, int(source), domain)
        finally:
            for file in files:
                file.close()

    def _bucket(self, number: int) -> Path:
        return self._folder / f"{number:02}"


def _with_first(lines: Iterable[bytes]) -> Iterator[tuple[bool, bytes, bytes]]:
    """For each of the sorted lines: whether it is the first of its key, itself, and that first."""
    key, first = b"\n", b""
    for line in lines:
        own = line[: line.index(b"\t")]
        is_first = own != key
        if is_first:
            key, first = own, line
        yield is_first, line, first


def _unique_line(line: bytes) -> bytes:
    fields = line.split(b"\t")
    return b"\t".join((fields[2], fields[3], fields[6]))
