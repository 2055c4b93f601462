"""The sets of 64-bit shingle hashes of texts, and their exact similarity.

The sets are made again from the documents and laid down in a file, sorted (8 bytes a shingle);
pairs are compared some thousands at a time by intersecting rows of two sparse matrices, in compiled
code. Memory: one lot of pairs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from web2gpt.dedup.candidates import Pairs, split
from web2gpt.dedup.census import NOBODY, Numbers
from web2gpt.dedup.corpus import Corpus
from web2gpt.dedup.shingles import Hashes, Shingler
from web2gpt.dedup.signatures import BATCH
from web2gpt.dedup.sound import sound_documents
from web2gpt.dedup.text import normalise
from web2gpt.errors import InputError
from web2gpt.io.progress import ProgressLine
from web2gpt.io.shards import Document

LOT = 1 << 22  # shingles of a lot of pairs, both sides

Form = Literal["union", "min", "max"]
Sizes = NDArray[np.int64]
Similarities = NDArray[np.float64]


def similarity(form: Form, common: Sizes, one: Sizes, other: Sizes) -> Similarities:
    """|A and B| over |A or B| (union), over the smaller (min) or the larger set (max)."""
    match form:
        case "union":
            divisor = one + other - common
        case "min":
            divisor = np.minimum(one, other)
        case "max":
            divisor = np.maximum(one, other)
    quotient: Similarities = np.divide(common, np.maximum(divisor, 1))
    return quotient


@dataclass(frozen=True)
class ShingleSets:
    """Sorted shingle hashes of each text by rank: hashes[starts[rank] : starts[rank] + sizes]."""

    hashes: Hashes  # in a file
    starts: Sizes
    sizes: Sizes

    def similarities(
        self, pairs: Pairs, form: Form, advance: Callable[[int], None]
    ) -> Similarities:
        """Exact similarity of each pair."""
        better, worse = split(pairs)
        result = np.empty(len(pairs), dtype=np.float64)
        load = np.cumsum(self.sizes[better] + self.sizes[worse])
        start = 0
        while start < len(pairs):
            before = load[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(load, before + LOT, side="right")))
            one, other = better[start:end], worse[start:end]
            common = self._common(one, other)
            result[start:end] = similarity(form, common, self.sizes[one], self.sizes[other])
            advance(end - start)
            start = end
        return result

    def _common(self, one: Numbers, other: Numbers) -> Sizes:
        """Number of common shingles of each pair, row against row of two sparse matrices."""
        both = self._rows(one).multiply(self._rows(other))
        return np.asarray(np.diff(both.indptr), dtype=np.int64)

    def _rows(self, ranks: Numbers) -> scipy.sparse.csr_matrix:
        """The sets as rows of a 0/1 matrix whose columns are all 63-bit numbers."""
        sizes = self.sizes[ranks]
        pointers = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(self.starts[ranks] - pointers[:-1], sizes) + np.arange(pointers[-1])
        columns = self.hashes[places].view(np.int64)
        ones = np.ones(len(columns), dtype=np.int8)
        shape = (len(ranks), np.iinfo(np.int64).max)
        matrix = scipy.sparse.csr_matrix((ones, columns, pointers), shape=shape)
        matrix.has_canonical_format = True
        return matrix


def write_sets(corpus: Corpus, wanted: Numbers, folder: Path) -> ShingleSets:
    """Make the shingle sets of the documents numbered ``wanted`` [ranks], streaming their shards.

    Raises ``InputError`` where documents and signatures are not of one run.
    """
    shingler = Shingler(corpus.settings.shingle, corpus.settings.ngram)
    rank_of = np.full(corpus.files.count, NOBODY, dtype=np.uint32)
    rank_of[wanted] = np.arange(len(wanted), dtype=np.uint32)
    starts, sizes = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.int64)
    path, total = folder / "shingles.bin", 0
    with path.open("wb") as file, ProgressLine("dedup shingles", unit="documents") as progress:
        for ranks, texts in _texts(corpus, rank_of, progress):
            hashes, counts = shingler.hash_all(texts)
            sets = [_distinct(part) for part in np.split(hashes, np.cumsum(counts)[:-1])]
            lengths = np.array([len(part) for part in sets], dtype=np.int64)
            np.concatenate(sets).tofile(file)
            starts[ranks], sizes[ranks] = total + np.cumsum(lengths) - lengths, lengths
            total += int(lengths.sum())
    if not total:
        return ShingleSets(np.empty(0, np.uint64), starts, sizes)
    return ShingleSets(np.memmap(path, dtype=np.uint64, mode="r"), starts, sizes)


def _distinct(hashes: Hashes) -> Hashes:
    """Each hash once, sorted, as a number of 63 bits; faster than ``np.unique`` on short arrays."""
    ordered = np.sort(hashes >> np.uint64(1))
    is_new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    distinct: Hashes = ordered[is_new]
    return distinct


def _texts(
    corpus: Corpus, rank_of: Numbers, progress: ProgressLine
) -> Iterator[tuple[list[int], list[str]]]:
    """Ranks and normalised texts of the wanted documents, a batch at a time."""
    ranks: list[int] = []
    texts: list[str] = []
    size = 0
    for shard in range(len(corpus.documents)):
        for rank, document in _wanted_of(corpus, shard, rank_of, progress):
            ranks.append(rank)
            texts.append(normalise(document["text"]))
            size += len(texts[-1])
            if size >= BATCH:
                yield ranks, texts
                ranks, texts, size = [], [], 0
    if ranks:
        yield ranks, texts


def _wanted_of(
    corpus: Corpus, shard: int, rank_of: Numbers, progress: ProgressLine
) -> Iterator[tuple[int, Document]]:
    """Ranks and documents of one shard; reads it only if something is wanted of it."""
    files, path = corpus.files, corpus.documents[shard]
    start, end = files.starts[shard], files.starts[shard + 1]
    if path is None or (rank_of[start:end] == NOBODY).all():
        return
    identifiers = files.columns(shard, ["id"])["id"].to_list()
    number = start
    for number, document in enumerate(sound_documents(path), start):
        if number >= end or identifiers[number - start].hex() != document["id"]:
            raise _mismatch(path, files.paths[shard])
        if rank_of[number] != NOBODY:
            yield int(rank_of[number]), document
        progress.advance()
    if number != end - 1:
        raise _mismatch(path, files.paths[shard])


def _mismatch(documents: Path, signatures: Path) -> InputError:
    return InputError(
        f"{documents}: not the documents that {signatures} was made from; give the shards in the "
        "same order, or run dedup signatures again."
    )
