"""Pack documents into samples: the sample index.

The documents, in their order, are one stream of tokens. Sample s is the tokens from s x L to
(s + 1) x L inclusive: L inputs and the token after the last one; the next sample starts on that
token. Row s of the sample index [n + 1, 2] says where sample s begins, as position in the document
order and offset in tokens: the values of megatron-core's build_sample_idx, by one binary search
for all rows instead of a loop.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def sample_rows(
    lengths: Array, starts: Array, *, first_position: int = 0, first_token: int = 0
) -> Array:
    """Position and offset [rows, 2] of the tokens ``starts`` [rows] (their numbers in the stream).

    ``lengths`` [documents] are those of a piece of the document order, which begins at
    ``first_position`` and with token ``first_token`` of the stream.
    """
    ends = first_token + np.cumsum(lengths, dtype=np.int64)
    position = np.searchsorted(ends, starts, side="right")
    offset = starts - (ends[position] - lengths[position])
    return np.stack([first_position + position, offset], axis=1)


def narrow(values: Array, small: Any, large: Any = np.int64) -> Array:
    """``values`` in the ``small`` type if they fit."""
    largest = int(values.max()) if values.size else 0
    return values.astype(small if largest <= np.iinfo(small).max else large)


def join(pieces: Iterable[Array], empty: Array) -> Array:
    """Pieces one after another, of which there may be none."""
    return np.concatenate([empty, *pieces])
