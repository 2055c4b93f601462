"""Step 2: buckets of equal bands, and the pairs of texts that are worth verifying.

The keys of all texts, band by band, lie in a file (8 bytes a text and band); one band is in memory
at a time. Within a bucket, texts stand in the order of the keep rule, and each is paired with the
``MATES`` best of the bucket and with the ``MATES`` just before it: all pairs of a small bucket,
and a number that grows linearly with a large one. Copies have nearly the same length, and are
neighbours in that order; chance buckets of a common boilerplate cost no more than 16 pairs a text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import polars
from numpy.typing import NDArray

from web2gpt.dedup.bands import Bands
from web2gpt.dedup.census import NOBODY, Census, Numbers
from web2gpt.dedup.signature_files import SignatureFiles
from web2gpt.io.atomic import temporary_name
from web2gpt.io.progress import ProgressLine

MATES = 8
Pairs = NDArray[np.uint64]  # better rank in the upper half, worse in the lower; sorted, distinct


@dataclass(frozen=True)
class Ranking:
    """The documents that have copies or bucket mates, and their texts, by the keep rule."""

    order: Numbers  # documents, the best first
    rank_of: Numbers  # [texts] NOBODY where none of the text's documents is in ``order``
    best: Numbers  # [ranks] the text's best document

    @classmethod
    def of(cls, census: Census, order: Numbers) -> Self:
        """Rank the texts of the documents in ``order``: each stands where its best one does."""
        texts = census.text_of[order]
        _, first = np.unique(texts, return_index=True)
        places = np.sort(first)
        rank_of = np.full(len(census.first), NOBODY, dtype=np.uint32)
        rank_of[texts[places]] = np.arange(len(places), dtype=np.uint32)
        return cls(order, rank_of, order[places])


def write_keys(files: SignatureFiles, census: Census, bands: Bands, path: Path) -> None:
    """Write the band keys [bands, texts that have shingles] to ``path``, whole or not at all."""
    firsts = census.first[census.long_enough]
    draft = temporary_name(path)
    keys = np.lib.format.open_memmap(
        draft, mode="w+", dtype=np.uint64, shape=(bands.count, len(firsts))
    )
    done = 0
    with ProgressLine("dedup bands", unit="documents", total=files.count) as progress:
        for number, signatures in files.signatures():
            end = int(np.searchsorted(firsts, number + len(signatures)))
            rows = firsts[done:end] - number
            keys[:, done:end] = bands.keys(signatures[rows])
            done = end
            progress.advance(len(signatures))
    keys.flush()
    draft.rename(path)


def bucketed(keys: NDArray[np.uint64], census: Census) -> NDArray[np.bool_]:
    """[texts] whether each shares a bucket with another."""
    texts = np.flatnonzero(census.long_enough)
    result = np.zeros(len(census.first), dtype=bool)
    for members in _buckets(keys):
        result[texts[members["text"].to_numpy()]] = True
    return result


def candidate_pairs(keys: NDArray[np.uint64], census: Census, rank_of: Numbers) -> Pairs:
    """The pairs of ranks of all bands. ``rank_of`` [texts] is NOBODY for texts in no bucket."""
    ranks = rank_of[census.long_enough]
    pairs = np.empty(0, dtype=np.uint64)
    with ProgressLine("dedup buckets", unit="bands", total=len(keys)) as progress:
        for members in _buckets(keys):
            rank = polars.Series("rank", ranks[members["text"].to_numpy()])
            ranked = members.with_columns(rank).sort("key", "rank")
            found = _pairs_of(ranked["key"].to_numpy(), ranked["rank"].to_numpy())
            pairs = np.union1d(pairs, found)
            progress.advance(note=f"{len(pairs):,} pairs")
    return pairs


def _buckets(keys: NDArray[np.uint64]) -> Iterator[polars.DataFrame]:
    """For each band the texts (positions in ``keys``) that share their key with another."""
    for band in keys:
        frame = polars.DataFrame({"key": np.array(band)}).with_row_index("text")
        yield frame.filter(polars.len().over("key") > 1)


def _pairs_of(keys: NDArray[np.uint64], ranks: Numbers) -> Pairs:
    """Pairs within buckets, from keys and ranks [members] sorted by both."""
    if not len(keys):
        return np.empty(0, dtype=np.uint64)
    is_first = np.append(True, keys[1:] != keys[:-1])
    starts = np.flatnonzero(is_first)
    start = starts[np.cumsum(is_first) - 1]
    place = np.arange(len(keys)) - start  # of each member in its bucket
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
