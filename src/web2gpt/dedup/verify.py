"""Step 3: the similarity of candidate pairs, exact or estimated.

Exact: the sets of 64-bit shingle hashes of the texts in question are made again from the documents
and laid down in a file, sorted (8 bytes a shingle); pairs are then compared some thousands at a
time by intersecting rows of two sparse matrices, in compiled code. Memory: one lot of pairs.
Estimate: the share of equal values of two signatures; its standard error is
sqrt(s (1 - s) / permutations).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.candidates import Pairs, split
from web2gpt.dedup.census import NOBODY, Numbers
from web2gpt.dedup.corpus import Corpus
from web2gpt.dedup.minhash import Signatures
from web2gpt.dedup.shingles import Hashes, Shingler
from web2gpt.dedup.signature_files import SignatureFiles
from web2gpt.dedup.signatures import BATCH
from web2gpt.dedup.sound import sound_documents
from web2gpt.dedup.text import normalise
from web2gpt.errors import InputError
from web2gpt.io.atomic import temporary_name
from web2gpt.io.progress import ProgressLine
from web2gpt.io.shards import Document

LOT = 1 << 22  # shingles of a lot of pairs, both sides
SIGNATURE_LOT = 1 << 13  # pairs of signatures compared at once
DOUBT = 5.0  # standard errors below the threshold from which a pair need not be verified

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


@dataclass(frozen=True)
class Measured:
    """Pairs of ranks, sorted, their similarities, and which of these are exact."""

    pairs: Pairs
    similarities: Similarities
    exact: NDArray[np.bool_]


def measure(corpus: Corpus, sources: Numbers, pairs: Pairs, folder: Path) -> Measured:
    """Measure pairs of ranks; those hopelessly below the threshold are left out."""
    return _measured(corpus, sources, pairs, folder, hopeless=False)


def measure_all(corpus: Corpus, sources: Numbers, pairs: Pairs, folder: Path) -> Measured:
    """Measure all pairs of ranks."""
    return _measured(corpus, sources, pairs, folder, hopeless=True)


def _measured(
    corpus: Corpus, sources: Numbers, pairs: Pairs, folder: Path, *, hopeless: bool
) -> Measured:
    """``sources`` [ranks] are the documents that hold the texts. A text whose documents were not
    given can only be estimated."""
    if not len(pairs):
        return Measured(pairs, np.empty(0), np.empty(0, dtype=bool))
    similarities = estimates(corpus.files, sources, pairs, folder)
    better, worse = split(pairs)
    readable = _readable(corpus)[sources]
    exact = readable[better] & readable[worse] & (corpus.settings.verify == "exact")
    if not hopeless:
        chosen = ~exact | worth_verifying(similarities, corpus.settings)
        pairs, similarities, exact = pairs[chosen], similarities[chosen], exact[chosen]
    similarities[exact] = measure_exactly(corpus, sources, pairs[exact], folder)
    return Measured(pairs, similarities, exact)


def _readable(corpus: Corpus) -> NDArray[np.bool_]:
    """[documents] whether the documents were given beside the signatures."""
    given = [path is not None for path in corpus.documents]
    return np.repeat(np.array(given, dtype=bool), np.diff(corpus.files.starts))


def measure_exactly(corpus: Corpus, sources: Numbers, pairs: Pairs, folder: Path) -> Similarities:
    """The exact similarities of pairs of ranks whose documents were given."""
    if not len(pairs):
        return np.empty(0)
    ranks = np.unique(np.concatenate(split(pairs)))
    sets = write_sets(corpus, sources[ranks], folder)
    starts, sizes = np.zeros(len(sources), np.int64), np.zeros(len(sources), np.int64)
    starts[ranks], sizes[ranks] = sets.starts, sets.sizes
    sets = ShingleSets(sets.hashes, starts, sizes)
    with ProgressLine("dedup verify", unit="pairs", total=len(pairs)) as progress:
        return sets.similarities(pairs, corpus.settings.jaccard, progress.advance)


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
            ends = np.cumsum(counts)
            for rank, end, count in zip(ranks, ends, counts, strict=True):
                distinct = np.unique(hashes[end - count : end] >> np.uint64(1))
                distinct.tofile(file)
                starts[rank], sizes[rank] = total, len(distinct)
                total += len(distinct)
    if not total:
        return ShingleSets(np.empty(0, np.uint64), starts, sizes)
    return ShingleSets(np.memmap(path, dtype=np.uint64, mode="r"), starts, sizes)


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


def _gathered(files: SignatureFiles, wanted: Numbers, path: Path) -> Signatures:
    """The signatures [ranks, permutations] of the documents numbered ``wanted``, in a file."""
    order = np.argsort(wanted)
    numbers = wanted[order]
    draft = temporary_name(path)
    rows: Signatures | None = None
    for number, signatures in files.signatures():
        if rows is None:
            shape = (len(wanted), signatures.shape[1])
            rows = np.lib.format.open_memmap(draft, mode="w+", dtype=np.uint32, shape=shape)
        low, high = np.searchsorted(numbers, [number, number + len(signatures)])
        rows[order[low:high]] = signatures[numbers[low:high] - number]
    if rows is None:
        return np.empty((0, 0), dtype=np.uint32)
    draft.rename(path)
    return rows


def estimates(files: SignatureFiles, sources: Numbers, pairs: Pairs, folder: Path) -> Similarities:
    """Jaccard similarity (of the union) of each pair, by its signatures."""
    signatures = _gathered(files, sources, folder / "signatures.npy")
    better, worse = split(pairs)
    result = np.empty(len(pairs), dtype=np.float64)
    for start in range(0, len(pairs), SIGNATURE_LOT):
        lot = slice(start, start + SIGNATURE_LOT)
        result[lot] = np.mean(signatures[better[lot]] == signatures[worse[lot]], axis=1)
    return result


def standard_error(similarity: float, settings: Dedup) -> float:
    """Of the estimate of a similarity."""
    return math.sqrt(similarity * (1 - similarity) / settings.permutations)


def worth_verifying(estimate: Similarities, settings: Dedup) -> NDArray[np.bool_]:
    """Pairs whose estimate is not hopelessly below the threshold (union form only)."""
    if settings.jaccard != "union":
        return np.ones(len(estimate), dtype=bool)
    threshold = settings.threshold
    error = max(standard_error(threshold, settings), standard_error(0.99, settings))
    hopeful: NDArray[np.bool_] = np.greater_equal(estimate, threshold - DOUBT * error)
    return hopeful
