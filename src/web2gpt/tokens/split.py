"""Divide documents into train, validation and test.

A document belongs to the first of these that claims it: a named validation set (all documents of
its source), the held-out share (its own field ``held_out``), the split. The first two are
validation; the split divides what they leave.

Rule of the split, megatron-core's: shares are normalized and added up, boundaries are rounded to
whole documents (halves to even), the parts are contiguous and in the order of the dataset.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from web2gpt.tokens.streams import Stream

SPLITS = ("train", "valid", "test")
PRECEDENCE = "a named validation set, the held-out share, the split"

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Division:
    """Documents of one stream, by their numbers: what is trained on, what is tested on, and three
    kinds of validation."""

    train: Array
    named: Array
    held_out: Array
    valid: Array  # by the split
    test: Array

    def part(self, split: str) -> Array:
        """The documents of train, valid or test, in order."""
        if split == "valid":
            return np.sort(np.concatenate([self.named, self.held_out, self.valid]))
        return self.train if split == "train" else self.test


def divide(stream: Stream, held_out: Array, split: str) -> Division:
    """``held_out`` [documents of the run] says which of all are held out."""
    none = stream.documents[:0]
    if stream.validation:
        return Division(none, stream.documents, none, none, none)
    is_held_out = held_out[stream.documents]
    left = stream.documents[~is_held_out]
    train, valid, test = (left[begin:end] for begin, end in split_bounds(split, len(left)))
    return Division(train, none, stream.documents[is_held_out], valid, test)


def validation_counts(divisions: Sequence[Division]) -> dict[str, int]:
    """Documents of the validation by what claimed them."""
    return {
        "named": sum(len(division.named) for division in divisions),
        "held_out": sum(len(division.held_out) for division in divisions),
        "split": sum(len(division.valid) for division in divisions),
    }


def split_shares(split: str) -> tuple[float, ...]:
    """Shares of train, valid and test from a string such as "949,50,1"; missing ones are 0."""
    numbers = [float(part) for part in re.split("[,/]", split)]
    numbers += [0.0] * (len(SPLITS) - len(numbers))
    total = sum(numbers)
    return tuple(number / total for number in numbers)


def split_bounds(split: str, documents: int) -> list[tuple[int, int]]:
    """First document and end of each part; a part without documents has both equal."""
    ends = [round(end * float(documents)) for end in accumulate(split_shares(split))]
    return list(zip([0, *ends[:-1]], ends, strict=True))
