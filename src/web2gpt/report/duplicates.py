"""Near-duplicates as the page shows them: how large clusters are, and some copies side by side.

Memory: a number for each of at most ``MAX_ROWS`` removed documents, and ids of ``MAX_DOCUMENTS``.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from web2gpt.report.difference import Parts, differences
from web2gpt.report.files import UNREADABLE, good_lines

MAX_ROWS = 5_000_000  # of clusters.parquet; removed documents stand first
MAX_CANDIDATES = 200  # copies whose texts are looked for
MAX_DOCUMENTS = 20_000  # the first ones, among which examples are sought
EXAMPLES = 4

Pair = tuple[float, str, str]
"""Similarity, id of the removed document, id of the kept one."""


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
    folder = data / "documents"
    known = pa.array([one["id"] for one in _documents(folder) if isinstance(one.get("id"), str)],
                     pa.string())  # fmt: skip
    kept: list[Any] = []
    pairs: list[Pair] = []
    for batch in _removed(data / "dedup" / "clusters.parquet"):
        kept.append(batch["kept"])
        pairs += islice(_near(batch, known), max(0, MAX_CANDIDATES - len(pairs)))
    return Duplicates(_sizes(kept), tuple(islice(_examples(folder, sorted(pairs)), EXAMPLES)))


def _removed(path: Path) -> Iterator[Any]:
    """The documents that were removed, a table with id, kept, similarity after another."""
    seen = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=["id", "kept", "similarity"]):
                rows = batch.filter(pc.is_valid(batch["similarity"]))
                yield rows
                seen += len(batch)
                if len(rows) < len(batch) or seen >= MAX_ROWS:
                    return
    except UNREADABLE:
        return


def _sizes(kept: list[Any]) -> Counter[int]:
    """How many clusters have so many documents; a cluster is those that went for one, and it."""
    if not kept:
        return Counter()
    counts = pc.value_counts(pa.chunked_array(kept)).field("counts").to_numpy(zero_copy_only=False)
    sizes, clusters = np.unique(counts, return_counts=True)
    return Counter(dict(zip((sizes + 1).tolist(), clusters.tolist(), strict=True)))


def _near(batch: Any, known: Any) -> Iterator[Pair]:
    """Pairs of known documents that are no exact copies."""
    both = pc.and_(pc.is_in(batch["id"], value_set=known), pc.is_in(batch["kept"], value_set=known))
    for row in batch.filter(pc.and_(both, pc.less(batch["similarity"], 1.0))).to_pylist():
        yield row["similarity"], row["id"], row["kept"]


def _examples(folder: Path, pairs: list[Pair]) -> Iterator[Copy]:
    """The pairs with their texts."""
    texts = _texts(folder, {one for pair in pairs for one in pair[1:]})
    for similarity, removed, kept in pairs:
        if removed in texts and kept in texts:
            (removed_url, one), (kept_url, other) = texts[removed], texts[kept]
            parts, kept_parts = differences(one, other)
            yield Copy(similarity, removed_url, parts, kept_url, kept_parts)


def _texts(folder: Path, wanted: set[str]) -> dict[str, tuple[str, str]]:
    """URL and text of some documents, by id."""
    return {
        one["id"]: (_text(one.get("url")), _text(one.get("text")))
        for one in (_documents(folder) if wanted else ())
        if one.get("id") in wanted
    }


def _documents(folder: Path) -> Iterator[dict[str, Any]]:
    """The first documents, as far as they can be read."""
    try:
        documents = (one for path in sorted(folder.glob("*.jsonl.zst")) for one in good_lines(path))
        yield from islice(documents, MAX_DOCUMENTS)
    except UNREADABLE:
        return


def _text(value: Any) -> str:
    return "" if value is None else str(value)
