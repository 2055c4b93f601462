"""What the documents are like: domains, languages, lengths, before the first rule and after all.

Before: the rows of dedup/signatures/, a row a document, with URL and length. After: the documents
of the corpus. Of large ones a sample is looked at, spread evenly; counts are then scaled up. What
stage clean dropped for its language stands in rejected/clean/. Memory: a count a domain.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq

from web2gpt.io.frames import read_documents, read_frames
from web2gpt.report.files import UNREADABLE, good_lines
from web2gpt.web.urls import is_address, registered_domain

MAX_ROWS = 200_000  # of the documents before
MAX_FRAMES = 24  # of the corpus, 4 MiB each
MAX_REJECTED = 200_000  # records
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Survey:
    """Counts of documents; ``lengths`` by the power of two below their number of characters."""

    total: int = 0
    seen: int = 0
    domains: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return self.seen > 0

    @property
    def is_sample(self) -> bool:
        return self.seen < self.total


def survey_before(data: Path) -> Survey:
    """The documents that dedup looked at; empty if it was left out."""
    files = sorted((data / "dedup" / "signatures").glob("*.parquet"))
    groups = [group for path in files for group in _row_groups(path)]
    total = sum(rows for _, _, rows in groups)
    stride = max(1, -(-total // MAX_ROWS))
    rows = (row for path, number, _ in groups[::stride] for row in _rows(path, number))
    return _count(((row["url"], None, row["characters"]) for row in rows), total)


def survey_after(data: Path) -> Survey:
    """The documents of the corpus; empty if there is none."""
    corpus = data / "corpus" / "corpus.jsonl.zst"
    try:
        frames = read_frames(corpus.with_name("corpus.frames.parquet"), corpus)
        stride = max(1, -(-len(frames) // MAX_FRAMES))
        documents = (one for frame in frames[::stride] for one in read_documents(corpus, frame))
        facts = ((one.get("url"), one.get("language") or UNKNOWN, len(one.get("text") or ""))
                 for one in documents)  # fmt: skip
        return _count(facts, sum(frame.documents for frame in frames))
    except UNREADABLE:
        return Survey()


def dropped_languages(data: Path) -> Counter[str]:
    """Documents that clean dropped for their language, by the language found."""
    found: Counter[str] = Counter()
    for path in sorted((data / "rejected" / "clean").glob("*.jsonl.zst")):
        try:
            for record in islice(good_lines(path), MAX_REJECTED):
                if record.get("reason") == "language":
                    found[str(record.get("figure") or UNKNOWN).split(" ")[0]] += 1
        except UNREADABLE:
            continue
    return found


def _count(facts: Iterable[tuple[Any, str | None, int]], total: int) -> Survey:
    """Add up (URL, language, characters) of documents, and scale the counts up to ``total``."""
    domains: Counter[str] = Counter()
    languages: Counter[str] = Counter()
    lengths: Counter[int] = Counter()
    hosts: dict[str, str] = {}
    seen = 0
    for url, language, characters in facts:
        seen += 1
        domains[_domain(url, hosts)] += 1
        lengths[max(0, characters.bit_length() - 1)] += 1
        if language:
            languages[language] += 1
    scaled = [_scaled(counts, total, seen) for counts in (domains, languages, lengths)]
    return Survey(total, seen, *scaled)


def _scaled(counts: Counter[Any], total: int, seen: int) -> Counter[Any]:
    if seen in (0, total):
        return counts
    return Counter({name: round(count * total / seen) for name, count in counts.items()})


def _domain(url: Any, hosts: dict[str, str]) -> str:
    """The registered domain of a URL; ``hosts`` remembers those of hosts seen before."""
    try:
        host = urlsplit(url).hostname if isinstance(url, str) else None
    except ValueError:
        host = None
    if not host:
        return UNKNOWN
    if host not in hosts:
        hosts[host] = host if is_address(host) else registered_domain(host) or host
    return hosts[host]


def _row_groups(path: Path) -> Iterator[tuple[Path, int, int]]:
    try:
        metadata = pq.read_metadata(path)
    except UNREADABLE:
        return
    yield from ((path, n, metadata.row_group(n).num_rows) for n in range(metadata.num_row_groups))


def _rows(path: Path, number: int) -> list[dict[str, Any]]:
    try:
        with pq.ParquetFile(path) as file:
            rows: list[dict[str, Any]] = file.read_row_group(
                number, columns=["url", "characters"]
            ).to_pylist()
    except UNREADABLE:
        return []
    return [row for row in rows if isinstance(row["characters"], int)]
