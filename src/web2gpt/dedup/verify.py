"""The similarity of candidate pairs, exact or estimated.

The estimate is the share of equal values of two signatures; its standard error is
sqrt(s (1 - s) / permutations). Where documents are at hand, pairs that it leaves any hope are
measured exactly.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.candidates import Pairs, split
from web2gpt.dedup.census import Numbers
from web2gpt.dedup.corpus import Corpus
from web2gpt.dedup.minhash import Signatures
from web2gpt.dedup.sets import ShingleSets, Similarities, write_sets
from web2gpt.dedup.signature_files import SignatureFiles
from web2gpt.io.atomic import temporary_name
from web2gpt.io.progress import ProgressLine

SIGNATURE_LOT = 1 << 13  # pairs of signatures compared at once
DOUBT = 5.0  # standard errors below the threshold from which a pair need not be verified


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
