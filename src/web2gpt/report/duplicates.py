"""Near-duplicates as the page shows them: how large clusters are, and some copies side by side."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from web2gpt.report.files import UNREADABLE, good_lines

MAX_ROWS = 5_000_000  # of clusters.parquet; removed documents stand first
MAX_CANDIDATES = 200  # copies whose texts are looked for
MAX_DOCUMENTS = 20_000  # that are searched for texts
EXAMPLES = 4
SHOWN = 700  # characters of each text


@dataclass(frozen=True)
class Copy:
    """A removed document beside the one that is kept for it."""

    similarity: float
    removed_url: str
    removed_text: str
    kept_url: str
    kept_text: str


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
            yield Copy(similarity, *texts[removed], *texts[kept])


def _texts(folder: Path, wanted: set[str]) -> dict[str, tuple[str, str]]:
    """URL and beginning of the text of some documents, by id."""
    found: dict[str, tuple[str, str]] = {}
    try:
        documents = (one for path in sorted(folder.glob("*.jsonl.zst")) for one in good_lines(path))
        for document in islice(documents, MAX_DOCUMENTS):
            if document.get("id") in wanted:
                found[document["id"]] = (_text(document.get("url")), _text(document.get("text")))
    except UNREADABLE:
        return found
    return found


def _text(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} …"
