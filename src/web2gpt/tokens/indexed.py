"""Megatron's indexed dataset: ``.bin``, all ids back to back, and ``.idx``, where each one lies.

    .idx, little endian: 9 bytes of magic, uint64 version 1, uint8 dtype code, uint64 sequences S,
    uint64 entries D of the document index; then int32[S] lengths in tokens, int64[S] offsets into
    .bin in bytes, int64[D] first sequence of each document and S at the end.

Written byte for byte as megatron-core's IndexedDatasetBuilder does, one sequence a document. Both
files are read through mmap: memory holds what is touched. Offsets are int64 throughout.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt

from web2gpt.errors import InputError

MAGIC = b"MMIDIDX\x00\x00"
HEADER = struct.Struct("<9sQBQQ")
VERSION = 1
DTYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
"""Types of token ids by their code; 6 and 7 are floating-point numbers, which ids are not."""

Array = npt.NDArray[Any]
CHUNK = 1 << 20  # bytes read at a time: they stay in the processor's cache


@dataclass(frozen=True)
class Header:
    """What the first 34 bytes of an .idx say."""

    dtype: np.dtype[Any]
    sequences: int
    entries: int  # of the document index: documents + 1

    @property
    def size(self) -> int:
        """Bytes that an .idx with this header has, without sequence modes."""
        return HEADER.size + self.sequences * 12 + self.entries * 8

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises ``InputError`` if the file is missing or does not begin like an .idx."""
        if not path.is_file():
            raise InputError(f"{path}: no such file{_near(path)}")
        with path.open("rb") as file:
            content = file.read(HEADER.size)
        if content.startswith(b"TNTIDX"):
            raise InputError(
                f"{path}: the old format of Megatron's lazy and cached datasets; tokenize the text "
                "again, or convert it with the tool that made it (--dataset-impl mmap)."
            )
        if len(content) < HEADER.size or not content.startswith(MAGIC):
            raise InputError(
                f"{path}: not an .idx file: it does not begin with MMIDIDX; name another "
                "or make it again."
            )
        _, version, code, sequences, entries = HEADER.unpack(content)
        if version != VERSION:
            raise InputError(
                f"{path}: version {version} of the format; only 1 is known; make it again."
            )
        if code not in DTYPES:
            raise InputError(
                f"{path}: dtype code {code}; token ids have one of {sorted(DTYPES)}. "
                "The file is damaged or holds no tokens."
            )
        return cls(np.dtype(DTYPES[code]), sequences, entries)


class IndexedDataset:
    """An open pair of files. ``dataset.get(i)`` are the ids of sequence ``i``.

    Raises ``InputError`` if a file is missing or sizes do not agree; see verify.py for the rest.
    """

    def __init__(self, prefix: Path):
        self.prefix = prefix
        self.bin, self.idx = bin_path(prefix), idx_path(prefix)
        header = Header.read(self.idx)
        size = self.idx.stat().st_size
        if size not in (header.size, header.size + header.sequences):  # with sequence modes
            raise InputError(
                f"{self.idx}: has {size:,} bytes where its header asks for {header.size:,}; it is "
                "cut short or damaged: make it again."
            )
        if not self.bin.is_file():
            raise InputError(
                f"{self.bin}: no such file, but {self.idx} is there; put the two together."
            )
        self.dtype = header.dtype
        self.has_modes = size != header.size  # a byte a sequence at the end: multimodal data
        self.lengths = _section(self.idx, "<i4", HEADER.size, header.sequences)  # [S], tokens
        after = HEADER.size + 4 * header.sequences
        self.pointers = _section(self.idx, "<i8", after, header.sequences)  # [S], bytes
        after += 8 * header.sequences
        self.document_index = _section(self.idx, "<i8", after, header.entries)  # [documents + 1]
        tokens, rest = divmod(self.bin.stat().st_size, self.dtype.itemsize)
        if rest:
            raise InputError(
                f"{self.bin}: {rest} bytes more than whole {self.dtype.name} ids; "
                "it is cut short: make it again."
            )
        self.tokens = _section(self.bin, self.dtype, 0, tokens)  # all ids, back to back

    def __len__(self) -> int:
        return len(self.lengths)

    def get(self, sequence: int, offset: int = 0, length: int | None = None) -> Array:
        """Ids [length] of a sequence, from ``offset`` on; a view of the file."""
        begin = int(self.pointers[sequence]) // self.dtype.itemsize
        end = begin + int(self.lengths[sequence])
        begin += offset
        return self.tokens[begin : end if length is None else min(end, begin + length)]

    def chunks(self) -> Iterator[Array]:
        """All ids in order, some at a time; each chunk is gone when the next one is asked for.

        Read, not mapped, so that memory stays flat, and always into the same bytes, which is three
        times as fast as into new ones.
        """
        buffer = np.empty(CHUNK, np.uint8)
        with self.bin.open("rb") as file:
            while size := file.readinto(buffer.data):
                yield buffer[:size].view(self.dtype)


def write_idx(
    file: IO[bytes], lengths: Array, dtype: np.dtype[Any], document_index: Array | None = None
) -> None:
    """Write the .idx of sequences of these lengths [S], in tokens.

    ``document_index`` [documents + 1] is the first sequence of each document, and S; None: each
    sequence is a document.
    """
    if document_index is None:
        document_index = np.arange(len(lengths) + 1, dtype="<i8")
    code = next(code for code, name in DTYPES.items() if np.dtype(name) == dtype)
    file.write(HEADER.pack(MAGIC, VERSION, code, len(lengths), len(document_index)))
    file.write(lengths.astype("<i4").tobytes())
    for begin in _pointers(lengths, dtype.itemsize):
        file.write(begin.astype("<i8").tobytes())
    file.write(document_index.astype("<i8").tobytes())


def _pointers(lengths: Array, itemsize: int, chunk: int = 1 << 22) -> Iterable[Array]:
    """Byte offsets of all sequences, some at a time."""
    start = 0
    for first in range(0, len(lengths), chunk):
        ends = start + np.cumsum(lengths[first : first + chunk].astype(np.int64) * itemsize)
        yield np.concatenate([[start], ends[:-1]])
        start = int(ends[-1])


def bin_path(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + ".bin")


def idx_path(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + ".idx")


def prefix_of(path: Path) -> Path:
    """The prefix that is meant: a .bin or .idx may be named too."""
    return path.with_suffix("") if path.suffix in (".bin", ".idx") else path


def _section(path: Path, dtype: Any, offset: int, count: int) -> Array:
    if count == 0:
        return np.empty(0, dtype)
    return np.memmap(path, dtype, "r", offset, (count,))


def _near(path: Path) -> str:
    """What lies beside a missing .idx that may have been meant."""
    stem = path.name.removesuffix(".idx")
    near = sorted(found.name.removesuffix(".idx") for found in path.parent.glob(f"{stem}*.idx"))
    near = near or sorted(found.name.removesuffix(".idx") for found in path.parent.glob("*.idx"))
    return (
        f"; beside it lie the prefixes {', '.join(near[:5])}."
        if near
        else "; name the prefix of a pair."
    )
