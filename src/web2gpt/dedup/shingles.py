"""Hashes of all shingles of many texts at once, without a Python loop over shingles.

A shingle of n words (or characters) is a stretch of the normalised text's UTF-8 bytes. Its hash:

    poly(s) = sum over k of table[s[k]] * B^k   mod 2^64,  B odd
    hash64  = fmix64(poly),   hash32 = its upper half

With the prefix sums P of table[byte] * B^position over a whole batch, the polynomial of the
stretch [start, end) is (P[end] - P[start]) * B^(-start): two look-ups a shingle. ``hash64_of`` says
the same for a single shingle in plain Python and is what ``datasketch`` is given in the tests.
fmix64 is MurmurHash3's finalizer (public domain, A. Appleby).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from web2gpt.dedup.text import LONG

Hashes = NDArray[np.uint64]
Counts = NDArray[np.int64]

BASE = 0x9E3779B97F4A7C15  # odd, hence invertible modulo 2^64
MASK = (1 << 64) - 1
BATCH = 1 << 19  # characters of text hashed at once
SPACE = 0x20


def fmix64(value: int) -> int:
    """MurmurHash3's 64-bit finalizer, a bijection."""
    value = (value ^ (value >> 33)) * 0xFF51AFD7ED558CCD & MASK
    value = (value ^ (value >> 33)) * 0xC4CEB9FE1A85EC53 & MASK
    return value ^ (value >> 33)


TABLE = np.array([fmix64(byte + 1) for byte in range(256)], dtype=np.uint64)


def hash64_of(shingle: bytes) -> int:
    """The 64-bit hash of one shingle: the definition."""
    poly, power = 0, 1
    for byte in shingle:
        poly = (poly + int(TABLE[byte]) * power) & MASK
        power = power * BASE & MASK
    return fmix64(poly)


def hash32_of(shingle: bytes) -> int:
    """The 32-bit hash of one shingle, fit to be datasketch's ``hashfunc``."""
    return hash64_of(shingle) >> 32


@dataclass(frozen=True)
class Shingler:
    """Shingles of ``ngram`` words, or of ``ngram`` characters, of normalised texts."""

    kind: Literal["words", "characters"]
    ngram: int

    def shingles_of(self, text: str) -> list[bytes]:
        """The shingles of one normalised text in order: the definition."""
        units = text.split(" ") if self.kind == "words" and text else list(text)
        joint = " " if self.kind == "words" else ""
        starts = range(len(units) - self.ngram + 1)
        return [joint.join(units[at : at + self.ngram]).encode() for at in starts]

    def hash_all(self, texts: Sequence[str]) -> tuple[Hashes, Counts]:
        """Hashes of all shingles of the normalised ``texts``, one text after another.

        Returns hashes [total] and the number of shingles of each text [texts]; a text with fewer
        than ``ngram`` words (characters) has none. Repeated shingles are repeated.
        """
        counts = np.zeros(len(texts), dtype=np.int64)
        parts: list[Hashes] = []
        waiting: list[bytes] = []
        size = 0
        for number, text in enumerate(texts):
            for piece in self._pieces(text):
                data = piece.encode(errors="surrogatepass")
                units = data.count(b" ") + 1 if self.kind == "words" else len(piece)
                if not data or units < self.ngram:
                    continue
                counts[number] += units - self.ngram + 1
                waiting.append(data)
                size += len(data)
                if size >= BATCH:
                    parts.append(self._hash_batch(waiting))
                    waiting, size = [], 0
        if waiting:
            parts.append(self._hash_batch(waiting))
        return np.concatenate(parts) if parts else np.empty(0, np.uint64), counts

    def _pieces(self, text: str) -> Iterator[str]:
        """A long text cut so that each shingle lies in exactly one piece, in order.

        A piece is longer than its overlap with the next: ``normalise`` cuts long texts' words.
        """
        start, overlap = 0, self.ngram - 1
        while len(text) - start > LONG:
            end = start + LONG
            if self.kind == "words":
                end = text.find(" ", end)
                if end < 0:
                    break
            yield text[start:end]
            start = end - overlap
            if self.kind == "words":
                start = end
                for _ in range(overlap):
                    start = text.rfind(" ", 0, start)
                start += 1
        yield text[start:]

    def _hash_batch(self, texts: list[bytes]) -> Hashes:
        """Hashes of the shingles of ``texts``, each of which has at least one."""
        data = np.frombuffer(b" ".join(texts) + b" ", dtype=np.uint8)
        lasts = np.cumsum([len(text) + 1 for text in texts]) - 1  # each text's closing space
        if self.kind == "words":
            ends = np.flatnonzero(data == SPACE)
            starts = np.concatenate([[0], ends[:-1] + 1])
            closing = np.searchsorted(ends, lasts)  # the last word of each text
        else:
            starts = np.flatnonzero((data & 0xC0) != 0x80)  # the closing spaces, too
            ends = np.append(starts[1:], len(data))
            closing = np.searchsorted(starts, lasts)
        begins = np.ones(len(starts), dtype=bool)
        first = 0 if self.kind == "words" else -1
        begins[closing] = begins[closing] & (first == 0)
        for back in range(self.ngram - 1):
            begins[closing + first - back] = False
        at = np.flatnonzero(begins)
        return _stretches(data, starts[at], ends[at + self.ngram - 1])


def _stretches(data: NDArray[np.uint8], starts: Counts, ends: Counts) -> Hashes:
    """hash64 of data[start:end] for each pair of positions."""
    powers, inverse = _powers(1 << max(20, len(data).bit_length()))
    prefix = np.zeros(len(data) + 1, dtype=np.uint64)
    values = TABLE[data]
    values *= powers[: len(data)]
    np.cumsum(values, out=prefix[1:])
    hashes = prefix[ends]
    hashes -= prefix[starts]
    hashes *= inverse[starts]
    return _fmix64_all(hashes)


@cache
def _powers(count: int) -> tuple[Hashes, Hashes]:
    """B^k and B^-k modulo 2^64 for k < count."""
    both = []
    for base in (BASE, pow(BASE, -1, 1 << 64)):
        powers = np.full(count, base, dtype=np.uint64)
        powers[0] = 1
        both.append(np.multiply.accumulate(powers))
    return both[0], both[1]


def _fmix64_all(values: Hashes) -> Hashes:
    """``fmix64`` of each value, in place."""
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        values ^= values >> np.uint64(33)
        values *= np.uint64(multiplier)
    values ^= values >> np.uint64(33)
    return values
