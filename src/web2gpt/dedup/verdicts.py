"""The file clusters.parquet: what becomes of each document.

    id          string    32 hex digits
    cluster     string    id of the best document of its cluster; its own if it is alone
    kept        string    id of the document that is kept for it; its own if it is kept
    similarity  float64   with the kept one; null if it is kept itself
    reason      string    exact_duplicate or near_duplicate; null if it is kept

Removed documents come first, then kept ones, each by id: whoever looks for removed ones stops at
the first row group without a similarity.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from web2gpt.dedup.census import NOBODY, Census, Numbers
from web2gpt.dedup.signature_files import SignatureFiles

ROWS = 1 << 16
SCHEMA = pyarrow.schema(
    [
        ("id", pyarrow.string()),
        ("cluster", pyarrow.string()),
        ("kept", pyarrow.string()),
        ("similarity", pyarrow.float64()),
        ("reason", pyarrow.string()),
    ]
)
Ids = NDArray[np.uint8]  # [documents, 16]


@dataclass(frozen=True)
class Verdicts:
    """For each document, by number: its cluster's best, the kept one, and their similarity."""

    cluster: Numbers
    kept: Numbers
    similarity: NDArray[np.float64]

    @property
    def removed(self) -> NDArray[np.bool_]:
        return np.not_equal(self.kept, np.arange(len(self.kept)))


def write_verdicts(verdicts: Verdicts, census: Census, files: SignatureFiles, draft: Path) -> None:
    """Write the table of all documents; a second document of an id has no row."""
    upper, lower = files.halves("id")
    removed, own = verdicts.removed, census.own
    order = np.lexsort((lower[:own], upper[:own], ~removed[:own]))
    order = order[census.text_of[order] != NOBODY]
    boundary = int(removed[order].sum())

    def identifiers(which: NDArray[np.integer]) -> list[str]:
        both = np.stack([upper[which], lower[which]], axis=1).astype(">u8")
        text = both.tobytes().hex()
        return [text[at : at + 32] for at in range(0, len(text), 32)]

    with pyarrow.parquet.ParquetWriter(draft, SCHEMA, compression="zstd") as writer:
        for part in _parts(order, boundary):
            gone = removed[part]
            kept = verdicts.kept[part]
            exact = census.text_of[part] == census.text_of[kept]
            reasons = np.where(exact, "exact_duplicate", "near_duplicate")
            columns = [
                pyarrow.array(identifiers(part)),
                pyarrow.array(identifiers(verdicts.cluster[part])),
                pyarrow.array(identifiers(kept)),
                pyarrow.array(verdicts.similarity[part], mask=~gone),
                pyarrow.array(reasons.tolist(), pyarrow.string(), mask=~gone),
            ]
            writer.write_table(pyarrow.table(columns, schema=SCHEMA))


def _parts(order: NDArray[np.int64], boundary: int) -> Iterator[NDArray[np.int64]]:
    """Row groups: none mixes removed and kept documents."""
    for half in (order[:boundary], order[boundary:]):
        for start in range(0, len(half), ROWS):
            yield half[start : start + ROWS]
