"""MinHash signatures of many documents at once, equal to datasketch's bit for bit.

datasketch 2's scheme ``affine32``: a 32-bit hash is mixed once by MurmurHash3's finalizer, then
permuted by h -> a*h + b modulo 2^32 with odd a; the signature is the least value under each of the
permutations, which are taken from datasketch itself. Here one permutation is applied to the
shingles of a whole block of documents before the next: long arrays, no Python loop over shingles.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from datasketch import MinHash
from numpy.typing import NDArray

Signatures = NDArray[np.uint32]
SEED = 1  # datasketch's own default
SCHEME = "affine32"
EMPTY = np.uint32(0xFFFFFFFF)  # datasketch's value where no shingle was seen
BLOCK = 1 << 17  # shingles permuted at once: what fits into a core's cache


@dataclass(frozen=True)
class Permutations:
    """The parameters a and b of each permutation, [permutations] each."""

    a: Signatures
    b: Signatures

    @classmethod
    def of(cls, count: int) -> Self:
        a, b = MinHash(num_perm=count, seed=SEED, scheme=SCHEME).permutations
        return cls(a, b)

    def signatures(self, hashes: Signatures, counts: NDArray[np.int64]) -> Signatures:
        """Signatures [documents, permutations] from 32-bit shingle hashes, one document after
        another, and the number of each document's shingles; without any, all values are EMPTY."""
        ends = np.cumsum(counts)
        starts = ends - counts
        result = np.full((len(counts), len(self.a)), EMPTY, dtype=np.uint32)
        for low in range(0, len(hashes), BLOCK):
            high = min(low + BLOCK, len(hashes))
            documents = np.arange(
                np.searchsorted(ends, low, side="right"), np.searchsorted(starts, high)
            )
            documents = documents[counts[documents] > 0]
            offsets = np.maximum(starts[documents], low) - low
            least = self._least(_fmix32(hashes[low:high]), offsets)
            result[documents] = np.minimum(result[documents], least)
        return result

    def _least(self, mixed: Signatures, offsets: NDArray[np.int64]) -> Signatures:
        """The least permuted value of each stretch that begins at ``offsets``."""
        least = np.empty((len(self.a), len(offsets)), dtype=np.uint32)
        permuted = np.empty_like(mixed)
        for number, (a, b) in enumerate(zip(self.a, self.b, strict=True)):
            np.multiply(mixed, a, out=permuted)
            np.add(permuted, b, out=permuted)
            np.minimum.reduceat(permuted, offsets, out=least[number])
        return least.T


def _fmix32(values: Signatures) -> Signatures:
    """MurmurHash3's 32-bit finalizer, a bijection."""
    values = values ^ (values >> np.uint32(16))
    values *= np.uint32(0x85EBCA6B)
    values ^= values >> np.uint32(13)
    values *= np.uint32(0xC2B2AE35)
    values ^= values >> np.uint32(16)
    return values
