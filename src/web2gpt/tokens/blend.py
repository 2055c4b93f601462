"""Mix streams by weight: which stream each sample of the training comes from.

Method: Webster's divisor method as a sequence. Stream i claims its j-th sample at time
(2j + 1) / weight_i; claims are served in the order of time. Every prefix of the sequence is thereby
Webster's exact apportionment of its length, and a longer run begins with the shorter one's
sequence.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from web2gpt.tokens.order import Order

Array = npt.NDArray[Any]


def blend_sequence(weights: Sequence[float], samples: int) -> tuple[Array, Array]:
    """For each of the samples [samples] its stream, and its number within that stream."""
    shares = np.asarray(weights, np.float64) / np.sum(weights)
    counts = np.minimum(np.ceil(shares * samples).astype(np.int64) + len(weights), samples)
    streams = np.repeat(np.arange(len(weights)), counts)
    numbers = np.concatenate([np.arange(count) for count in counts])
    times = (2 * numbers + 1) / shares[streams]
    first = np.argsort(times, kind="stable")[:samples]
    return streams[first], numbers[first]


def blend_orders(orders: Sequence[Order], streams: Array, numbers: Array) -> Order:
    """One order from those of the streams: their arrays one after another, and as ``shuffle`` the
    rows in the blended sequence. The row that ends a stream's samples begins none."""
    positions = np.cumsum([0, *(len(order.document) for order in orders)])
    rows = np.cumsum([0, *(len(order.sample) for order in orders)])
    shuffle = np.empty(len(streams), np.int64)
    for stream, order in enumerate(orders):
        mine = streams == stream
        shuffle[mine] = rows[stream] + order.shuffle[numbers[mine]].astype(np.int64)
    samples = [
        order.sample.astype(np.int64) + np.array([position, 0])
        for order, position in zip(orders, positions, strict=False)
    ]
    documents = [order.document.astype(np.int64) for order in orders]
    return Order(np.concatenate(documents), np.concatenate(samples), shuffle).narrowed()
