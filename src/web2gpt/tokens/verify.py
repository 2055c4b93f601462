"""Check an indexed dataset, ours or another tool's, and name its first fault.

What other tools are known to have written: offsets that overflowed 32 bits, a .bin cut short by a
killed job, a stale .idx beside a new .bin, a document index that does not end at the last sequence.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from web2gpt.errors import InputError
from web2gpt.tokens.indexed import IndexedDataset, prefix_of
from web2gpt.tokens.vocabulary import Vocabulary

CHUNK = 1 << 22  # entries looked at together
AGAIN = "make the pair again from its text"


def verify_dataset(prefix: Path, vocabulary: Vocabulary | None = None) -> IndexedDataset:
    """The open dataset, if header, sizes, lengths, offsets and document index agree.

    With ``vocabulary`` the ids are looked at too. Raises ``InputError`` naming the first fault.
    """
    data = IndexedDataset(prefix_of(prefix))
    faults = _faults(data) if vocabulary is None else _all_faults(data, vocabulary)
    fault = next(faults, None)
    if fault:
        raise InputError(fault)
    return data


def _all_faults(data: IndexedDataset, vocabulary: Vocabulary) -> Iterator[str]:
    yield from _faults(data)
    begin = 0
    for chunk in data.chunks():
        bad = np.flatnonzero((chunk < 0) | (chunk >= vocabulary.size))
        if bad.size:
            yield (
                f"{data.bin}: token {begin + int(bad[0]):,} has the id {int(chunk[bad[0]])}, but "
                f"the tokenizer has {vocabulary.size:,} tokens; name the one that it was made with."
            )
        begin += len(chunk)


def _faults(data: IndexedDataset) -> Iterator[str]:
    """Faults in the order of the file; later ones may follow from earlier ones."""
    expected = 0  # offset of the next sequence, in bytes
    for begin in range(0, len(data), CHUNK):
        lengths = data.lengths[begin : begin + CHUNK].astype(np.int64)
        if (lengths < 0).any():
            at = begin + _first(lengths < 0)
            yield f"{data.idx}: sequence {at:,} has a negative length; it is damaged: {AGAIN}."
        ends = expected + np.cumsum(lengths) * data.dtype.itemsize
        pointers = np.concatenate([[expected], ends[:-1]])
        wrong = data.pointers[begin : begin + CHUNK] != pointers
        if wrong.any():
            at = _first(wrong)
            yield _pointer_fault(data, begin + at, int(pointers[at]))
        expected = int(ends[-1])
    size = data.bin.stat().st_size
    if size != expected:
        yield (
            f"{data.bin}: {size:,} bytes, but {data.idx.name} speaks of {expected:,}; "
            + (
                f"it was cut short: {AGAIN}."
                if size < expected
                else f"the two are not of one run: {AGAIN}."
            )
        )
    yield from _document_faults(data)


def _pointer_fault(data: IndexedDataset, at: int, expected: int) -> str:
    found = int(data.pointers[at])
    if (found - expected) % (1 << 32) == 0:
        why = "its tool counted bytes in 32 bits, as some do beyond 2 GiB"
    else:
        why = "the sequences do not lie back to back"
    return (
        f"{data.idx}: sequence {at:,} is said to begin at byte {found:,}, where the lengths before "
        f"it give {expected:,}; {why}: {AGAIN}."
    )


def _document_faults(data: IndexedDataset) -> Iterator[str]:
    index = data.document_index
    if len(index) == 0 or index[0] != 0 or index[-1] != len(data):
        first, last = (int(index[0]), int(index[-1])) if len(index) else (None, None)
        yield (
            f"{data.idx}: the document index goes from {first} to {last} instead of from 0 to "
            f"{len(data):,}; an older tool may have written it: {AGAIN}."
        )
    for begin in range(0, len(index) - 1, CHUNK):
        steps = np.diff(index[begin : begin + CHUNK + 1])
        if (steps < 0).any():
            at = begin + _first(steps < 0)
            yield f"{data.idx}: document {at:,} ends before it begins; it is damaged: {AGAIN}."


def _first(mask: npt.NDArray[Any]) -> int:
    return int(np.flatnonzero(mask)[0])
