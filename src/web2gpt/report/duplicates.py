"""Near-duplicates as the page shows them: how large clusters are, and some copies side by side."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from web2gpt.report.files import UNREADABLE, good_lines

MAX_ROWS = 5_000_000  # of clusters.parquet; removed documents stand first
MAX_CANDIDATES = 200  # copies whose texts are looked for
MAX_DOCUMENTS = 20_000  # that are searched for texts
EXAMPLES = 4
COMPARED = 4000  # words of each text
SHOWN = 120  # words of each text, the first of them ``BEFORE`` words before a difference
BEFORE = 20


Parts = tuple[tuple[str, bool], ...]
"""A text in pieces, each with whether it is another one in the other text."""


@dataclass(frozen=True)
class Copy:
    """A removed document beside the one that is kept for it, from shortly before they differ."""

    similarity: float
    removed_url: str
    removed: Parts
    kept_url: str
    kept: Parts


@dataclass(frozen=True)
class Duplicates:
    """``sizes``: how many clusters have so many documents, two or more."""

    sizes: Counter[int] = field(default_factory=Counter)
    examples: tuple[Copy, ...] = ()


def find_duplicates(data: Path) -> Duplicates:
    """Read dedup/clusters.parquet, and the texts of some of its pairs from documents/."""
    removed = list(_removed(data / "dedup" / "clusters.parquet"))
    members = Counter(cluster for _, cluster, _ in removed)
    sizes = Counter(count + 1 for count in members.values())
    near = sorted(row for row in removed if row[2] < 1)[:MAX_CANDIDATES]
    return Duplicates(sizes, tuple(islice(_examples(data, near), EXAMPLES)))


def _removed(path: Path) -> Iterator[tuple[str, str, float]]:
    """(id, kept id, similarity) of documents that were removed."""
    try:
        with pq.ParquetFile(path) as file:
            batches = file.iter_batches(columns=["id", "kept", "similarity"])
            rows = (row for batch in batches for row in batch.to_pylist())
            for row in islice(rows, MAX_ROWS):
                if row["similarity"] is None:
                    return
                yield row["id"], row["kept"], row["similarity"]
    except UNREADABLE:
        return


def _examples(data: Path, pairs: Iterable[tuple[str, str, float]]) -> Iterator[Copy]:
    """Pairs both of whose texts are found, those of middling similarity first."""
    chosen = list(pairs)
    texts = _texts(data / "documents", {one for pair in chosen for one in pair[:2]})
    for removed, kept, similarity in sorted(chosen, key=lambda pair: (pair[2], pair[0])):
        if removed in texts and kept in texts:
            (removed_url, one), (kept_url, other) = texts[removed], texts[kept]
            parts, kept_parts = _compared(one, other)
            yield Copy(similarity, removed_url, parts, kept_url, kept_parts)


def _texts(folder: Path, wanted: set[str]) -> dict[str, tuple[str, str]]:
    """URL and text of some documents, by id."""
    found: dict[str, tuple[str, str]] = {}
    try:
        documents = (one for path in sorted(folder.glob("*.jsonl.zst")) for one in good_lines(path))
        for document in islice(documents, MAX_DOCUMENTS):
            if document.get("id") in wanted:
                found[document["id"]] = (_text(document.get("url")), _text(document.get("text")))
    except UNREADABLE:
        return found
    return found


def _compared(one: str, other: str) -> tuple[Parts, Parts]:
    """Both texts, word by word, from shortly before their first difference."""
    words: list[list[str]] = [re.findall(r"\S+\s*", text)[:COMPARED] for text in (one, other)]
    blocks = SequenceMatcher(a=words[0], b=words[1], autojunk=False).get_opcodes()
    first = next((block for block in blocks if block[0] != "equal"), blocks[0] if blocks else None)
    start = max(0, first[1] - BEFORE) if first else 0
    return (
        _cut([(words[0][a:b], kind) for kind, a, b, _, _ in blocks], start),
        _cut([(words[1][c:d], kind) for kind, _, _, c, d in blocks], start),
    )


def _cut(blocks: list[tuple[list[str], str]], start: int) -> Parts:
    """``SHOWN`` words from ``start`` on."""
    parts: list[tuple[str, bool]] = [("… ", False)] if start else []
    position = 0
    for words, kind in blocks:
        shown = words[max(0, start - position) : max(0, start + SHOWN - position)]
        position += len(words)
        if shown:
            parts.append(("".join(shown), kind != "equal"))
    return (*parts, ("…", False)) if position > start + SHOWN else tuple(parts)


def _text(value: Any) -> str:
    return "" if value is None else str(value)
