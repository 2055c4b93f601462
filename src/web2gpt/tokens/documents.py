"""Ids, URLs and sources of documents by their number: documents.parquet, a row group at a time."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from web2gpt.errors import InputError
from web2gpt.io.made import made_by

FIELDS = ("id", "url", "source")


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
            raise InputError(
                f"{self._path}: no row {number:,} of {self._first[-1]:,}; run tokenize again."
            )
        group = int(np.searchsorted(self._first, number, side="right")) - 1
        if group != self._group:
            self._group, self._table = group, self._file.read_row_group(group)
        row = self._table.slice(number - int(self._first[group]), 1).to_pylist()[0]
        return {name: row.get(name) for name in FIELDS}

    def describe(self, number: int) -> str:
        """The row as one line."""
        return " ".join(value for value in self.row(number).values() if value)


class NamesByDataset:
    """The documents.parquet of a run's datasets, by their names; "" names the first dataset's."""

    def __init__(self, files: Mapping[str, Path]):
        self._names = {name: DocumentNames(path) for name, path in files.items()}

    def of(self, dataset: str, place: int) -> DocumentNames | None:
        """Those of a dataset, at ``place`` in the index; None if they are not known."""
        return self._names.get(dataset) or (self._names.get("") if place == 0 else None)
