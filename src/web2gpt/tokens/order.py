"""The order of documents and samples: which text is trained on when.

``stable``: documents stand in the order of epoch 0, epoch 1, ..., where epoch e is a permutation
drawn from (seed, stream, e); they are packed into samples without a gap, also from one epoch to
the next; the samples that begin in epoch e are permuted among themselves. Nothing depends on how
many samples are asked for, so a longer run begins with the shorter one's batches.

``megatron``: megatron-core's rule with its generator, value by value: one RandomState shuffles the
documents of all epochs together (the last one apart if less than 80% of it is used) and then the
samples.

``once``: documents as they stand, one pass, for evaluation. The last sample is filled up with the
first documents again, so that every token is seen; whoever counts stops at ``targets``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from web2gpt.tokens.packing import join, narrow, sample_rows

Array = npt.NDArray[Any]

SEPARATE_BELOW = 0.80  # of a last epoch: megatron-core's threshold


@dataclass(frozen=True)
class Order:
    """The three arrays, with megatron-core's meaning.

    ``document`` [positions]: document numbers in order. ``sample`` [rows + 1, 2]: position and
    offset at which each sample begins. ``shuffle`` [samples]: which row each sample is.
    """

    document: Array
    sample: Array
    shuffle: Array

    def narrowed(self) -> Self:
        """The same values in the narrowest of megatron-core's types."""
        return type(self)(
            narrow(self.document, np.int32),
            narrow(self.sample, np.int32),
            narrow(self.shuffle, np.uint32),
        )


EMPTY = Order(np.empty(0, np.int32), np.zeros((1, 2), np.int32), np.empty(0, np.uint32))


def stable_order(
    documents: Array, lengths: Array, *, length: int, samples: int, seed: int, stream: int = 0
) -> Order:
    """At least ``samples`` samples of ``length`` + 1 tokens, all that begin in an epoch begun.

    ``documents`` [n] are document numbers, ``lengths`` [n] their tokens (the sum must not be 0).
    ``stream`` tells apart the orders of several sources under one seed.
    """
    tokens = int(lengths.sum(dtype=np.int64))
    epochs = -(-samples * length // tokens)  # epochs that the samples begin in
    rows = -(-epochs * tokens // length)  # samples that begin in these
    order, sample, shuffle = [], [], []
    for epoch, starts in _starts_by_epoch(rows, length, tokens):
        permutation = _permutation(len(documents), seed, stream, epoch, 0)
        in_order = lengths[permutation]
        order.append(documents[permutation])
        sample.append(
            sample_rows(
                in_order,
                starts,
                first_position=epoch * len(documents),
                first_token=epoch * tokens,
            )
        )
        begins = starts[starts < rows * length]  # without the end of the last sample
        if begins.size and epoch < epochs:
            mixed = _permutation(begins.size, seed, stream, epoch, 1)
            shuffle.append(begins[mixed] // length)
    return _order(join(order, documents[:0]), join(sample, np.empty((0, 2), np.int64)), shuffle)


def once_order(documents: Array, lengths: Array, *, length: int) -> Order:
    """All tokens of the documents in their own order, each predicted at least once."""
    tokens = int(lengths.sum(dtype=np.int64))
    rows = max(1, -(-(tokens - 1) // length))
    passes = -(-(rows * length + 1) // tokens)
    starts = np.arange(rows + 1, dtype=np.int64) * length
    sample = sample_rows(np.tile(lengths, passes), starts)
    return _order(np.tile(documents, passes), sample, [np.arange(rows)])


def megatron_order(
    documents: Array, lengths: Array, *, length: int, samples: int | None, seed: int
) -> Order:
    """The values of megatron-core's GPTDataset for ``samples`` samples, or None for one epoch."""
    tokens = int(lengths.sum(dtype=np.int64))
    epochs = 1 if samples is None else max(1, -(-(samples * length + 1) // tokens))
    rows = (epochs * tokens - 1) // length
    before_last = ((epochs - 1) * tokens - 1) // length
    apart = (
        samples is not None
        and epochs > 1
        and samples - before_last < int(SEPARATE_BELOW * ((tokens - 1) // length))
    )
    random = np.random.RandomState(seed)
    positions = _mixed(np.tile(np.arange(len(documents)), epochs - apart), random)
    if apart:
        positions = np.concatenate([positions, _mixed(np.arange(len(documents)), random)])
    starts = np.arange(rows + 1, dtype=np.int64) * length
    sample = sample_rows(lengths[positions], starts)
    sample[0] = 0  # also where the first documents are empty
    first = before_last if apart else rows
    shuffle = [_mixed(np.arange(first), random), _mixed(np.arange(first, rows), random)]
    return Order(documents[positions], sample, np.concatenate(shuffle)).narrowed()


def _starts_by_epoch(rows: int, length: int, tokens: int) -> Iterator[tuple[int, Array]]:
    """Each epoch with the sample beginnings in it, the end of the last sample included."""
    epoch, row = 0, 0
    while row <= rows:
        end = min(rows + 1, -(-(epoch + 1) * tokens // length))
        yield epoch, np.arange(row, end, dtype=np.int64) * length
        epoch, row = epoch + 1, end


def _order(document: Array, sample: Array, shuffle: list[Array]) -> Order:
    """Narrow types, and no document beyond the last sample's end."""
    used = int(sample[-1, 0]) + 1
    return Order(document[:used], sample, join(shuffle, np.empty(0, np.int64))).narrowed()


def _permutation(size: int, *key: int) -> Array:
    """A permutation of 0 .. size - 1 that ``key`` decides: the ranks of PCG64's raw output, which
    NumPy keeps the same in all versions."""
    keys = np.random.PCG64(np.random.SeedSequence(key)).random_raw(size)
    return np.argsort(keys, kind="stable")


def _mixed(values: Array, random: np.random.RandomState) -> Array:
    random.shuffle(values)
    return values
