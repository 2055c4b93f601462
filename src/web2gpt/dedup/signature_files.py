"""Reading signature files: one at a time, some rows at a time, as NumPy arrays.

Documents are numbered over all files in the order given; the numbers live as long as one run of
the step and decide nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson
import polars
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.minhash import Signatures
from web2gpt.dedup.signatures import method_of
from web2gpt.errors import InputError

ROWS = 1 << 13  # rows in memory at once
Halves = NDArray[np.uint64]


@dataclass(frozen=True)
class SignatureFiles:
    """Signature files made in one way; file k holds the documents from ``starts[k]``."""

    paths: tuple[Path, ...]
    starts: tuple[int, ...]  # one more than files: the last is the number of documents
    own: int  # documents below this number are of this run, the others of earlier runs

    @classmethod
    def open(cls, paths: Sequence[Path], settings: Dedup, earlier: Sequence[Path] = ()) -> Self:
        """This run's files, then those of earlier runs.

        Raises ``InputError`` for a file that is missing, broken, or made in another way.
        """
        starts = [0]
        for path in (*paths, *earlier):
            metadata = _metadata(path)
            found = orjson.loads((metadata.metadata or {}).get(b"minhash", b"null"))
            wanted = method_of(settings)
            if found != wanted:
                differs = sorted(k for k in wanted if (found or {}).get(k) != wanted[k])
                raise InputError(
                    f"{path}: its signatures were made with other settings "
                    f"({', '.join(differs)}); make them again with these."
                )
            starts.append(starts[-1] + metadata.num_rows)
        return cls((*paths, *earlier), tuple(starts), starts[len(paths)])

    @property
    def count(self) -> int:
        return self.starts[-1]

    def columns(self, file: int, names: list[str]) -> polars.DataFrame:
        """Some columns of one file, whole, after a column ``number``."""
        frame = polars.read_parquet(self.paths[file], columns=names, glob=False)
        return frame.with_row_index("number", offset=self.starts[file])

    def halves(self, name: str) -> tuple[Halves, Halves]:
        """A column of 16 bytes of all documents, as upper and lower halves [documents]."""
        upper, lower = np.empty(self.count, np.uint64), np.empty(self.count, np.uint64)
        for number, rows in self._rows(name):
            both = rows.view(">u8")
            upper[number : number + len(both)] = both[:, 0]
            lower[number : number + len(both)] = both[:, 1]
        return upper, lower

    def shingled(self) -> NDArray[np.uint32]:
        """Numbers of the documents that have a shingle, and so a signature."""
        parts = [self.columns(file, ["shingles"]) for file in range(len(self.paths))]
        found = [part.filter(polars.col("shingles") > 0)["number"].to_numpy() for part in parts]
        return np.concatenate(found or [np.empty(0)]).astype(np.uint32)

    def signatures(self) -> Iterator[tuple[int, Signatures]]:
        """First number and signatures [rows, permutations] of some documents after others."""
        for number, rows in self._rows("signature"):
            yield number, rows.view("<u4").astype(np.uint32, copy=False)

    def _rows(self, name: str) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """First number and a column's bytes [rows, width] of some documents after others."""
        for start, path in zip(self.starts, self.paths, strict=False):
            number = start
            with pyarrow.parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(ROWS, columns=[name], use_threads=False):
                    yield number, _bytes(batch.column(0))
                    number += len(batch)


def _metadata(path: Path) -> "_Metadata":
    if not path.exists():
        raise InputError(f"{path}: no such file; run dedup signatures first.")
    try:
        schema = pyarrow.parquet.read_schema(path)
        rows = pyarrow.parquet.read_metadata(path).num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a signature file ({error}); make it again.") from error
    return _Metadata(schema.metadata, rows)


@dataclass(frozen=True)
class _Metadata:
    metadata: dict[bytes, bytes] | None
    num_rows: int


def _bytes(array: Any) -> NDArray[np.uint8]:
    """An array of fixed-size binary values as bytes [rows, width], without a copy."""
    width = array.type.byte_width
    data = np.frombuffer(array.buffers()[1], dtype=np.uint8)
    start = array.offset * width
    return data[start : start + len(array) * width].reshape(len(array), width)
