"""Step 4: from verified pairs to kept texts and clusters.

Texts are named by rank: 0 is the best by the keep rule. ``star``: texts are taken in that order,
and one is kept unless it is similar to a kept one; each removed text was verified against the text
that replaces it. ``components``: of all texts connected by verified pairs the best is kept, though
a chain may join texts that have little in common. The *cluster* is the connected component in both.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from web2gpt.dedup.candidates import Pairs, split
from web2gpt.dedup.census import Numbers


@dataclass(frozen=True)
class Grouping:
    """For each rank: the rank of the best of its cluster, and of the text that is kept for it."""

    cluster: Numbers
    kept: Numbers


def group(pairs: Pairs, count: int, *, star: bool) -> Grouping:
    """Group ``count`` texts by their verified pairs."""
    better, worse = split(pairs)
    cluster = _components(better, worse, count)
    return Grouping(cluster, _star(better, worse, count) if star else cluster)


def _components(better: Numbers, worse: Numbers, count: int) -> Numbers:
    """The best rank of each text's connected component."""
    ones = np.ones(len(better), dtype=bool)
    graph = scipy.sparse.coo_matrix((ones, (better, worse)), shape=(count, count))
    number, labels = connected_components(graph, directed=False)
    best = np.full(number, count, dtype=np.int64)
    np.minimum.at(best, labels, np.arange(count))
    numbers: Numbers = best[labels].astype(np.uint32)
    return numbers


def _star(better: Numbers, worse: Numbers, count: int) -> Numbers:
    """For each text the best kept one that it is similar to; itself if it is kept.

    ``better`` is sorted. Takes one step for each text that has worse ones beside it.
    """
    kept = np.arange(count, dtype=np.uint32)
    centres, starts = np.unique(better, return_index=True)
    ends = np.searchsorted(better, centres, side="right")
    for centre, start, end in zip(centres, starts, ends, strict=True):
        if kept[centre] == centre:
            around = worse[start:end]
            kept[around[kept[around] == around]] = centre
    return kept
