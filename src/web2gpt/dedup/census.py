"""Who is there: documents, and the distinct texts among them.

Documents with the same normalised text (the same digest) form one *text*. A text has one
signature and one set of shingles, whichever of its documents they are taken from, so only texts
meet in buckets: a page that stands there 100,000 times costs one. Memory: some 60 bytes a document.
"""

from dataclasses import dataclass

import numpy as np
import polars
from numpy.typing import NDArray

from web2gpt.dedup.corpus import Corpus
from web2gpt.dedup.signature_files import Halves

Numbers = NDArray[np.uint32]
NOBODY = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True)
class Census:
    """Documents by number (position over all files), texts by number (order of appearance)."""

    text_of: Numbers  # [documents]; NOBODY for those that do not count
    first: Numbers  # [texts] the text's first document
    copies: Numbers  # [texts] how many documents have it
    own: int  # documents below this number are of this run, the others of earlier ones

    @property
    def is_new(self) -> NDArray[np.bool_]:
        """[texts] whether a document of this run has it."""
        return np.less(self.first, self.own)


def take_census(corpus: Corpus) -> Census:
    """Number the distinct texts.

    Of several documents with one id the first counts; ``merge`` makes errors of the others.
    """
    files = corpus.files
    numbers = np.flatnonzero(_counted(corpus)).astype(np.uint32)
    upper, lower = (half[numbers] for half in files.halves("digest"))
    order, is_first = _grouped(upper, lower)
    numbers = numbers[order]
    starts = np.flatnonzero(is_first)
    first = numbers[starts]
    rank_of_group = np.empty(len(first), dtype=np.uint32)
    by_appearance = np.argsort(first)
    rank_of_group[by_appearance] = np.arange(len(first), dtype=np.uint32)
    text_of = np.full(files.count, NOBODY, dtype=np.uint32)
    text_of[numbers] = rank_of_group[np.cumsum(is_first) - 1]
    copies = np.diff(np.append(starts, len(numbers))).astype(np.uint32)
    return Census(text_of, first[by_appearance], copies[by_appearance], files.own)


def _counted(corpus: Corpus) -> NDArray[np.bool_]:
    """[documents] the first of each id, in this run and in earlier ones, that was not removed."""
    upper, lower = corpus.files.halves("id")
    counts = np.zeros(corpus.files.count, dtype=bool)
    own = corpus.files.own
    for part in (slice(0, own), slice(own, None)):
        order, is_first = _grouped(upper[part], lower[part])
        counts[part][order[is_first]] = True
    removed = corpus.removed_before()
    if len(removed):
        earlier = polars.DataFrame({"upper": upper[own:], "lower": lower[own:]}).with_row_index()
        gone = earlier.join(removed, on=["upper", "lower"], how="semi")
        counts[own:][gone["index"].to_numpy()] = False
    return counts


def _grouped(upper: Halves, lower: Halves) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """An order that brings equal values together, each group in its former order, and where in it
    a group begins."""
    order = np.lexsort((lower, upper))
    is_first = np.ones(len(order), dtype=bool)
    upper, lower = upper[order], lower[order]
    is_first[1:] = (upper[1:] != upper[:-1]) | (lower[1:] != lower[:-1])
    return order, is_first
