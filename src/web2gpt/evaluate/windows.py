"""Cut a stream of tokens into windows that a model can see.

Invariant: each token but the first is scored exactly once, in the window that gives it the most
context of those it falls in; memory holds some windows, never the stream.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
GATHER = 1 << 18  # tokens of short documents joined at a time


@dataclass(frozen=True)
class Window:
    """``tokens`` [T + 1]: inputs are all but the last, targets all but the first, of which the
    first ``skip`` were scored before."""

    tokens: Array
    skip: int


def windows(pieces: Iterable[Array], length: int, stride: int | None = None) -> Iterator[Window]:
    """Windows of ``length`` inputs, each ``stride`` tokens after the last (by default ``length``,
    without overlap); the last one may be shorter. ``pieces`` are documents, taken back to back.
    """
    stride = stride or length
    buffer = np.empty(0, np.int64)
    seen = 1  # tokens at the start of the buffer that are scored already, or are the very first
    for piece in _gathered(pieces, max(GATHER, length + 1)):
        buffer = np.concatenate([buffer, piece])
        while len(buffer) > length:
            yield Window(buffer[: length + 1], seen - 1)
            buffer = buffer[stride:]
            seen = length + 1 - stride
    if len(buffer) > seen:
        yield Window(buffer, seen - 1)


def batches(cut: Iterable[Window], size: int) -> Iterator[list[Window]]:
    """Up to ``size`` windows of one length together."""
    batch: list[Window] = []
    for window in cut:
        if batch and (len(batch) == size or len(window.tokens) != len(batch[0].tokens)):
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _gathered(pieces: Iterable[Array], size: int) -> Iterator[Array]:
    """The same stream in pieces of at least ``size`` tokens, but for the last."""
    held: list[Array] = []
    count = 0
    for piece in pieces:
        held.append(np.asarray(piece, np.int64))
        count += len(piece)
        if count >= size:
            yield np.concatenate(held)
            held, count = [], 0
    if held:
        yield np.concatenate(held)
