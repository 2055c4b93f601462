"""Documents and their sources, small enough to see through."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pyarrow.parquet


def documents(first: int, count: int) -> list[list[int]]:
    """Documents whose tokens tell where they stand: 200 + number, then 0."""
    return [[200 + first + d] * (3 + d % 5) + [0] for d in range(count)]


def write_sources(path: Path, sources: Sequence[str], held_out: Sequence[int] = ()) -> Path:
    """A documents.parquet; ``held_out`` are numbers of documents."""
    columns = {
        "id": [f"{n:032x}" for n in range(len(sources))],
        "url": [f"https://example.org/{n}" for n in range(len(sources))],
        "source": list(sources),
        "held_out": [n in held_out for n in range(len(sources))],
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path
