"""Find duplicates and sort, in bounded memory, with files in the work folder.

Candidates are spread over ``BUCKETS`` files by a hash of their key, so that all with one key meet
in one file. A bucket's lines are built so that plain sorting puts the one to keep first among those
with its key. What is kept is spread again, over ranges of URLs whose bounds were sampled on the
way, and sorted range by range. Every field is free of tabs and of all that sorts before a tab: URLs
have no control characters.
"""

import shutil
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from web2gpt.web.urls import WebUrl, duplicate_key, preference

BUCKETS = 64
BUFFER = 1 << 18  # bytes held back for each bucket while writing
SAMPLE_EVERY = 1 << 14  # bytes of candidates for each URL sampled


class Candidate(NamedTuple):
    """A URL with what decides between duplicates: first ``rank``, then the URL, then its place."""

    key: str
    rank: int
    url: str
    source: int
    file: int
    line: int
    domain: str

    @classmethod
    def decode(cls, line: bytes) -> Self:
        key, rank, url, source, file, number, domain = line.decode().rstrip("\n").split("\t")
        return cls(key, int(rank), url, int(source), int(file), int(number), domain)


class Duplicate(NamedTuple):
    """A candidate left out, and the URL kept in its place."""

    candidate: Candidate
    kept: str


Unique = tuple[bytes, bytes, bytes]
"""A URL of the result, the number of its source in four digits, and its registered domain."""


def origin_of(source: int, file: int) -> str:
    """A candidate's source and file, as its line has them."""
    return f"{source:04}\t{file:06}"


def spilled(url: WebUrl, domain: str, origin: str, line: int) -> tuple[int, str]:
    """The bucket in which all candidates with a URL's key meet, and its own line there."""
    key = duplicate_key(url)
    bucket = zlib.crc32(key.encode()) % BUCKETS
    return bucket, f"{key}\t{preference(url)}\t{url.url}\t{origin}\t{line:012}\t{domain}\n"


class Spill:
    """``with Spill(folder) as spill:`` add candidates, then ``duplicates()``, then ``unique()``."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._sample: list[bytes] = []

    def __enter__(self) -> Self:
        shutil.rmtree(self._folder, ignore_errors=True)  # a killed run's
        self._folder.mkdir(parents=True)
        self._files = [_Parts(self._folder / f"bucket-{number:02}") for number in range(BUCKETS)]
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

    def add(self, buckets: Iterable[bytes]) -> None:
        """Add the lines of candidates, whole lines for each bucket in turn."""
        for file, lines in zip(self._files, buckets, strict=True):
            file.write(lines)
            for place in range(0, len(lines), SAMPLE_EVERY):
                start = lines.rfind(b"\n", 0, place) + 1
                self._sample.append(lines[start:].split(b"\t", 3)[2])

    def duplicates(self) -> Iterator[Duplicate]:
        """Every candidate but the best of each key; leaves the best ones to ``unique``."""
        bounds = self._bounds()
        ranges = [_Parts(self._folder / f"range-{n:02}") for n in range(len(bounds) + 1)]
        buckets, self._files = self._files, ranges
        for bucket in buckets:
            lines = bucket.take()
            lines.sort()
            kept: list[list[bytes]] = [[] for _ in ranges]
            for is_first, line, first in _with_first(lines):
                if is_first:
                    _, _, url, source, _, _, domain = line.split(b"\t")
                    kept[bisect_right(bounds, url)].append(b"%b\t%b\t%b" % (url, source, domain))
                else:
                    yield Duplicate(Candidate.decode(line), Candidate.decode(first).url)
            for part, some in zip(ranges, kept, strict=True):
                part.write(b"".join(some))

    def unique(self) -> Iterator[Unique]:
        """What is left after ``duplicates``, in the order of URLs."""
        for part in self._files:
            lines = part.take()
            lines.sort()
            for line in lines:
                url, source, domain = line[:-1].split(b"\t")
                yield url, source, domain

    def _bounds(self) -> Sequence[bytes]:
        """URLs that part all of them into ranges of about one size."""
        ordered = sorted(self._sample)
        step = max(1, len(ordered) // BUCKETS)
        return ordered[step::step][: BUCKETS - 1]


class _Parts:
    """A file of lines that is written in parts, then taken whole."""

    def __init__(self, path: Path):
        self._path = path
        self._file = path.open("wb", BUFFER)

    def write(self, lines: bytes) -> None:
        self._file.write(lines)

    def take(self) -> list[bytes]:
        """All lines, with their ends; the file is removed."""
        self._file.close()
        lines = self._path.read_bytes().splitlines(keepends=True)
        self._path.unlink()
        return lines

    def close(self) -> None:
        self._file.close()


def _with_first(lines: Iterable[bytes]) -> Iterator[tuple[bool, bytes, bytes]]:
    """For each of the sorted lines: whether it is the first of its key, itself, and that first."""
    key, first = b"\n", b""
    for line in lines:
        own = line[: line.index(b"\t")]
        is_first = own != key
        if is_first:
            key, first = own, line
        yield is_first, line, first
