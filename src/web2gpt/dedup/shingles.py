"""Hashes of all shingles of many texts at once, without a Python loop over shingles.

A shingle of n words is a stretch of the normalised text's UTF-8 bytes, with the space after each
word (the text ends with one); a shingle of n characters is the stretch of those. Its hash:

    poly(s) = sum over k of table[s[k]] * B^k   mod 2^64,  B odd
    hash64  = fmix64(poly),   hash32 = its upper half

With the prefix sums P of table[byte] * B^position over a whole batch, the polynomial of the
stretch [start, end) is (P[end] - P[start]) * B^(-start), and P is looked up once a word.
``hash64_of`` says the same for a single shingle in plain Python and is what ``datasketch`` is given
in the tests.
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

HASH = "poly64 fmix64, words with their spaces"  # names the definition: changed with it
BASE = 0x9E3779B97F4A7C15  # odd, hence invertible modulo 2^64
MASK = (1 << 64) - 1
BATCH = 1 << 16  # bytes of text hashed at once: what fits into a core's cache
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
        if self.kind == "words":
            units = [f"{word} " for word in units]
        starts = range(len(units) - self.ngram + 1)
        return ["".join(units[at : at + self.ngram]).encode() for at in starts]

    def hash_all(self, texts: Sequence[str]) -> tuple[Hashes, Counts]:
        """Hashes of all shingles of the normalised ``texts``, one text after another.

        Returns hashes [total] and the number of shingles of each text [texts]; a text with fewer
        than ``ngram`` words (characters) has none. Repeated shingles are repeated.
        """
        counts = np.zeros(len(texts), dtype=np.int64)
        parts: list[Hashes] = []
        waiting: list[bytes] = []
        units: list[int] = []
        size = 0
        for number, text in enumerate(texts):
            for piece in self._pieces(text):
                data = piece.encode(errors="surrogatepass")
                found = data.count(b" ") + 1 if self.kind == "words" else len(piece)
                if not data or found < self.ngram:
                    continue
                counts[number] += found - self.ngram + 1
                waiting.append(data)
                units.append(found)
                size += len(data)
                if size >= BATCH:
                    parts.append(self._hash_batch(waiting, units))
                    waiting, units, size = [], [], 0
        if waiting:
            parts.append(self._hash_batch(waiting, units))
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

    def _hash_batch(self, texts: list[bytes], units: list[int]) -> Hashes:
        """Hashes of the shingles of ``texts``, of which each has ``units`` >= ngram words
        (characters)."""
        joint = b" " if self.kind == "words" else b""
        data = np.frombuffer(joint.join([*texts, b""]), dtype=np.uint8)
        is_last = data == SPACE if self.kind == "words" else np.roll((data & 0xC0) != 0x80, -1)
        cuts = np.concatenate([[0], np.flatnonzero(is_last) + 1])
        hashes = _stretches(data, cuts, self.ngram)
        within = np.ones(len(hashes), dtype=bool)
        nexts = np.cumsum(units)[:-1]  # each later text's first word
        for back in range(1, self.ngram):
            within[nexts - back] = False
        return hashes[within]


def _stretches(data: NDArray[np.uint8], cuts: Counts, length: int) -> Hashes:
    """hash64 of data[cuts[i] : cuts[i + length]] for each i."""
    powers, inverse = _powers(1 << max(20, len(data).bit_length()))
    values = _at(TABLE, data)
    values *= powers[: len(data)]
    prefix = np.zeros(len(data) + 1, dtype=np.uint64)
    np.cumsum(values, out=prefix[1:])
    bounds = _at(prefix, cuts)
    hashes = bounds[length:] - bounds[:-length]
    hashes *= _at(inverse, cuts[:-length])
    return _fmix64_all(hashes)


def _at(values: Hashes, places: NDArray[np.integer]) -> Hashes:
    """values[places]; unlike an index, takes bytes as they are. All places are in range."""
    return np.take(values, places, mode="clip")


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
    shifted = np.empty_like(values)
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        values ^= np.right_shift(values, np.uint64(33), out=shifted)
        values *= np.uint64(multiplier)
    values ^= np.right_shift(values, np.uint64(33), out=shifted)
    return values
