"""Bands and rows: which documents become candidates.

A signature is cut into b bands of r values; two documents are candidates if some band is equal,
which has the probability 1 - (1 - s^r)^b at similarity s. b and r are datasketch's optimum: the
least weighted sum of the areas of false positives below the threshold and of false negatives
above it. Source: Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, section 3.4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from datasketch.lsh import _optimal_param
from numpy.typing import NDArray

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.minhash import Signatures

MULTIPLIER = np.uint64(0x9FB21C651E98DF25)


@dataclass(frozen=True)
class Bands:
    """``count`` bands of ``rows`` values each."""

    count: int
    rows: int

    @classmethod
    def of(cls, settings: Dedup) -> Self:
        """datasketch's choice for the threshold, the length of a signature and the weights."""
        return cls(
            *_optimal_param(
                settings.threshold,
                settings.permutations,
                settings.false_positive_weight,
                settings.false_negative_weight,
            )
        )

    def probability(self, similarity: float) -> float:
        """That two documents of this similarity become candidates."""
        return float(1 - (1 - similarity**self.rows) ** self.count)

    def describe(self) -> str:
        """The choice and its curve, in a line."""
        steps = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
        curve = ", ".join(f"{self.probability(s):.1%} at {s}" for s in steps)
        return f"{self.count} bands of {self.rows} rows; candidates: {curve}"

    def keys(self, signatures: Signatures, bands: Sequence[int]) -> NDArray[np.uint64]:
        """A 64-bit hash of some bands: [bands, documents] of signatures [documents, permutations].

        A chance collision (2^-64 a pair) makes a candidate, never a copy: candidates are verified.
        """
        used = signatures[:, : self.count * self.rows]
        cut = used.reshape(len(used), self.count, self.rows)[:, list(bands)].astype(np.uint64)
        keys = np.zeros((len(used), len(bands)), dtype=np.uint64)
        for row in range(self.rows):
            keys = (keys ^ cut[:, :, row]) * MULTIPLIER
            keys ^= keys >> np.uint64(29)
        return keys.T
