"""Find n-grams of the evaluation sets in texts, several lengths at once, without a loop over words.

Words of the evaluation sets are numbered from 1, all other words are 0. A window of n numbers has a
polynomial hash modulo 2**64, computed for all windows of a text at once; windows whose hash is that
of an n-gram are compared word for word, so that no collision counts.
"""

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no number is lost to the modulus

Ngram = tuple[str, ...]
Numbers = np.ndarray[tuple[int], np.dtype[Any]]


class Match(NamedTuple):
    """N-gram number ``ngram`` stands in a text from word ``start`` to before word ``end``."""

    start: int
    end: int
    ngram: int


class NgramFinder:
    """Finds a fixed list of n-grams in texts."""

    def __init__(self, ngrams: Iterable[Ngram]):
        self.ngrams = list(ngrams)
        self._numbers: dict[str, int] = {}
        for ngram in self.ngrams:
            for word in ngram:
                self._numbers.setdefault(word, len(self._numbers) + 1)
        self._by_length = {n: self._table(n) for n in sorted({len(ngram) for ngram in self.ngrams})}

    def find(self, words: list[str]) -> list[Match]:
        """All matches in a text's words, by start, then by length."""
        numbers = np.fromiter(
            map(self._numbers.get, words, repeat(0)), dtype=np.uint64, count=len(words)
        )
        known = np.concatenate(([0], np.cumsum(numbers > 0)))  # [words + 1]
        return sorted(
            match
            for length in self._by_length
            for match in self._find_length(words, numbers, known, length)
        )

    def _table(self, length: int) -> tuple[Numbers, list[int]]:
        """Hashes of all n-grams of a length, sorted, and the n-grams they belong to."""
        chosen = [number for number, ngram in enumerate(self.ngrams) if len(ngram) == length]
        rows = [[self._numbers[word] for word in self.ngrams[number]] for number in chosen]
        hashes = _window_hashes(np.array(rows, dtype=np.uint64).reshape(-1), length)[::length]
        order = np.argsort(hashes, kind="stable")
        return hashes[order], [chosen[place] for place in order]

    def _find_length(
        self, words: list[str], numbers: Numbers, known: Numbers, length: int
    ) -> Iterator[Match]:
        if len(words) < length:
            return
        starts = np.flatnonzero(known[length:] - known[:-length] == length)
        if not len(starts):
            return
        table, owners = self._by_length[length]
        hashes = _window_hashes(numbers, length)[starts]
        first, last = np.searchsorted(table, hashes), np.searchsorted(table, hashes, side="right")
        hits = last > first
        places = zip(starts[hits].tolist(), first[hits].tolist(), last[hits].tolist(), strict=True)
        for start, begin, end in places:
            window = tuple(words[start : start + length])
            for owner in owners[begin:end]:
                if self.ngrams[owner] == window:
                    yield Match(start, start + length, owner)


def _window_hashes(numbers: Numbers, length: int) -> Numbers:
    """Hash of each window of ``length`` numbers: [n] to [n - length + 1]."""
    count = len(numbers) - length + 1
    total = np.zeros(count, dtype=np.uint64)
    for offset in range(length):
        total *= BASE
        total += numbers[offset : offset + count]
    return total
