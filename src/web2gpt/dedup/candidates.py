"""From buckets to the pairs of texts that are worth verifying.

Exact copies collapse first: texts meet, not documents. Within a bucket, texts stand in the order of
the keep rule, and each is paired with the ``MATES`` best of the bucket and with the ``MATES`` just
before it: all pairs of a small bucket, and a number that grows linearly with a large one. Copies
have nearly the same length, and are neighbours in that order; chance buckets of a common
boilerplate cost no more than 16 pairs a text. Texts of earlier runs are not paired among
themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from web2gpt.dedup.buckets import BucketFiles, Keys
from web2gpt.dedup.census import NOBODY, Census, Numbers
from web2gpt.io.progress import ProgressLine

MATES = 8
Pairs = NDArray[np.uint64]  # better rank in the upper half, worse in the lower; sorted, distinct


@dataclass(frozen=True)
class Ranking:
    """The documents that have copies or bucket mates, and their texts, by the keep rule."""

    order: Numbers  # documents, the best first
    rank_of: Numbers  # [texts] NOBODY where none of the text's documents is in ``order``
    text: Numbers  # [ranks]
    best: Numbers  # [ranks] the text's best document

    @classmethod
    def of(cls, census: Census, order: Numbers) -> Self:
        """Rank the texts of the documents in ``order``: each stands where its best one does."""
        texts = census.text_of[order]
        _, first = np.unique(texts, return_index=True)
        places = np.sort(first)
        rank_of = np.full(len(census.first), NOBODY, dtype=np.uint32)
        rank_of[texts[places]] = np.arange(len(places), dtype=np.uint32)
        return cls(order, rank_of, texts[places], order[places])


def bucketed(buckets: BucketFiles, census: Census) -> NDArray[np.bool_]:
    """[texts] whether each shares a bucket with another, one of the two a new one."""
    result = np.zeros(len(census.first), dtype=bool)
    for _, texts in _texts(buckets, census):
        result[texts] = True
    return result


def candidate_pairs(buckets: BucketFiles, census: Census, ranking: Ranking) -> Pairs:
    """The pairs of ranks of all bands."""
    pairs = np.empty(0, dtype=np.uint64)
    is_new = census.is_new[ranking.text]
    with ProgressLine("dedup candidates", unit="bands") as progress:
        for keys, texts in _texts(buckets, census):
            ranks = ranking.rank_of[texts]
            order = np.lexsort((ranks, keys))
            found = _pairs_of(keys[order], ranks[order])
            better, worse = split(found)
            pairs = np.union1d(pairs, found[is_new[better] | is_new[worse]])
            progress.advance(note=f"{len(pairs):,} pairs")
    return pairs


def _texts(buckets: BucketFiles, census: Census) -> Iterator[tuple[Keys, Numbers]]:
    """Keys and texts, band by band, of the buckets that hold two texts, not both of them old."""
    for keys, documents in buckets.bands():
        keys_of_texts, texts = _collapsed(keys, census.text_of[documents])
        if len(texts):
            start, _ = _places(keys_of_texts)
            members = np.bincount(start)[start]
            news = np.bincount(start, weights=census.is_new[texts])[start]
            shared = (members > 1) & (news > 0)
            yield keys_of_texts[shared], texts[shared]


def _collapsed(keys: Keys, texts: Numbers) -> tuple[Keys, Numbers]:
    """Each text of a bucket once, sorted by key and text."""
    order = np.lexsort((texts, keys))
    keys, texts = keys[order], texts[order]
    distinct = texts != NOBODY
    distinct[1:] &= (keys[1:] != keys[:-1]) | (texts[1:] != texts[:-1])
    return keys[distinct], texts[distinct]


def _places(keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the bucket of each member starts, and the member's place in it; keys are sorted."""
    is_first = np.append(True, keys[1:] != keys[:-1])
    starts = np.flatnonzero(is_first)
    start = starts[np.cumsum(is_first) - 1]
    return start, np.arange(len(keys)) - start


def _pairs_of(keys: Keys, ranks: Numbers) -> Pairs:
    """Pairs within buckets, from keys and ranks [members] sorted by both."""
    if not len(keys):
        return np.empty(0, dtype=np.uint64)
    start, place = _places(keys)
    parts = []
    for step in range(1, MATES + 1):
        before = np.flatnonzero(place >= step)
        parts.append(_code(ranks[before - step], ranks[before]))
        far = np.flatnonzero(place > MATES + step - 1)
        parts.append(_code(ranks[start[far] + step - 1], ranks[far]))
    return np.unique(np.concatenate(parts))


def _code(better: Numbers, worse: Numbers) -> Pairs:
    return (better.astype(np.uint64) << np.uint64(32)) | worse


def split(pairs: Pairs) -> tuple[Numbers, Numbers]:
    """Better and worse ranks of pairs."""
    return (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)
