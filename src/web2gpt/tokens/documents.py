"""Ids, URLs and sources of documents by their number: documents.parquet, a row group at a time."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from web2gpt.errors import InputError
from web2gpt.io.made import made_by


class DocumentNames:
    """Row ``number`` of documents.parquet. Memory: the row group last looked at."""

    def __init__(self, path: Path):
        self._path = path
        with made_by("tokenize", path):
            self._file = pyarrow.parquet.ParquetFile(path)
        groups = self._file.metadata.num_row_groups
        rows = [self._file.metadata.row_group(group).num_rows for group in range(groups)]
        self._first = np.cumsum([0, *rows])
        self._group, self._table = -1, pyarrow.table({})

    def row(self, number: int) -> dict[str, str | None]:
        """{"id", "url", "source"} of a document. Raises ``InputError`` beyond the last one."""
        if not 0 <= number < self._first[-1]:
            raise InputError(f"{self._path}: no row {number:,}; there are {self._first[-1]:,}.")
        group = int(np.searchsorted(self._first, number, side="right")) - 1
        if group != self._group:
            self._group, self._table = group, self._file.read_row_group(group)
        row: dict[str, str | None] = self._table.slice(
            number - int(self._first[group]), 1
        ).to_pylist()[0]
        return row

    def describe(self, number: int) -> str:
        """The row as one line."""
        row = self.row(number)
        return " ".join(str(row[name]) for name in ("id", "url", "source") if row.get(name))
