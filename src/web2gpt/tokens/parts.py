"""Parts of a tokenized corpus, and how they become one.

A part holds the documents of some consecutive frames: ids, lengths, names of documents, rejected
records and counts, each in a file. Its counts are written last: a part that has them is whole, and
a rerun does not make it again. Which frames make a part depends on the corpus alone; joining is
copying, in order; so the result is the same for any number of threads and interruptions.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from web2gpt.io.frames import Frame
from web2gpt.io.statistics import Statistics, add_up
from web2gpt.tokens.indexed import write_idx

SCHEMA = pyarrow.schema(
    [
        ("id", pyarrow.string()),
        ("url", pyarrow.string()),
        ("source", pyarrow.string()),
        ("held_out", pyarrow.bool_()),
    ]
)


@dataclass(frozen=True)
class Part:
    """The files of part ``number`` in ``folder``, and the frames that it is made from."""

    folder: Path
    number: int
    frames: tuple[Frame, ...]

    def file(self, ending: str) -> Path:
        return self.folder / f"part-{self.number:05d}.{ending}"

    @property
    def is_done(self) -> bool:
        return self.file("json").exists()


def plan_parts(folder: Path, frames: Sequence[Frame], part_bytes: int) -> list[Part]:
    """Divide the frames into parts of at least ``part_bytes`` of text each, the last one aside."""
    groups: list[list[Frame]] = [[]]
    size = 0
    for frame in frames:
        if size >= part_bytes:
            groups.append([])
            size = 0
        groups[-1].append(frame)
        size += frame.text_bytes
    return [Part(folder, number, tuple(group)) for number, group in enumerate(groups)]


def join_tokens(parts: Sequence[Part], tokens: Path) -> None:
    """One .bin from those of the parts."""
    with tokens.open("wb") as target:
        for part in parts:
            with part.file("bin").open("rb") as source:
                shutil.copyfileobj(source, target, 1 << 20)


def join_index(parts: Sequence[Part], idx: Path, dtype: np.dtype[Any]) -> None:
    """The .idx of the joined parts. Memory: four bytes a document, and a little."""
    lengths = [np.load(part.file("lengths.npy")) for part in parts]
    with idx.open("wb") as file:
        write_idx(file, np.concatenate(lengths), dtype)


def join_documents(parts: Sequence[Part], documents: Path) -> None:
    """documents.parquet: row = document of the .idx."""
    with pyarrow.parquet.ParquetWriter(documents, SCHEMA, compression="zstd") as writer:
        for part in parts:
            with pyarrow.parquet.ParquetFile(part.file("parquet")) as file:
                for group in range(file.num_row_groups):
                    writer.write_table(file.read_row_group(group))


def join_rejected(parts: Sequence[Part], rejected: Path) -> None:
    """zstd frames back to back are one stream."""
    with rejected.open("wb") as target:
        for part in parts:
            with part.file("rejected.jsonl.zst").open("rb") as source:
                shutil.copyfileobj(source, target)


def join_statistics(parts: Sequence[Part]) -> Statistics:
    return add_up(Statistics.load(part.file("json")) for part in parts)
