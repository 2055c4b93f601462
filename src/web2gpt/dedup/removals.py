"""Reading clusters.parquet: the removals among some documents.

Apart from the rest, so that the jobs of step 5 start quickly.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from web2gpt.errors import InputError

COLUMNS = ["id", "kept", "similarity", "reason"]


@dataclass(frozen=True)
class Removal:
    """Why a document goes."""

    kept: str
    similarity: float
    reason: str


def removals_of(clusters: Path, wanted: Iterable[str]) -> dict[str, Removal]:
    """The removals among the documents ``wanted``, by id; reads one row group at a time.

    Raises ``InputError`` if the file is missing or not such a table.
    """
    if not clusters.exists():
        raise InputError(f"{clusters}: no such file; run dedup clusters first.")
    try:
        file = pyarrow.parquet.ParquetFile(clusters)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(
            f"{clusters}: not a table of clusters ({error}); make it again."
        ) from error
    names = pyarrow.array(wanted, pyarrow.string())
    removals: dict[str, Removal] = {}
    for number in range(file.num_row_groups):
        table = file.read_row_group(number, columns=COLUMNS)
        if table["similarity"].null_count:
            break  # removed documents stand first
        rows = table.filter(pyarrow.compute.is_in(table["id"], value_set=names))
        for identifier, *facts in zip(*(rows[name].to_pylist() for name in COLUMNS), strict=True):
            removals[identifier] = Removal(*facts)
    return removals
