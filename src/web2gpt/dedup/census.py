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
from web2gpt.dedup.signature_files import SignatureFiles

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
    counts = _counted(corpus)
    digests = _halves(files, "digest").with_row_index("number").filter(polars.Series(counts))
    texts = (
        digests.group_by("upper", "lower")
        .agg(polars.col("number").min().alias("first"), polars.len().alias("copies"))
        .sort("first")
        .with_row_index("text")
    )
    pairs = digests.join(texts.select("upper", "lower", "text"), on=["upper", "lower"])
    text_of = np.full(files.count, NOBODY, dtype=np.uint32)
    text_of[pairs["number"].to_numpy()] = pairs["text"].to_numpy()
    first, copies = (texts[name].to_numpy().astype(np.uint32) for name in ("first", "copies"))
    return Census(text_of, first, copies, files.own)


def _counted(corpus: Corpus) -> NDArray[np.bool_]:
    """[documents] the first of each id, in this run and in earlier ones, that was not removed."""
    own, count = corpus.files.own, corpus.files.count
    documents = _halves(corpus.files, "id").with_row_index("number")
    documents = documents.with_columns(is_own=polars.col("number") < own)
    documents = documents.unique(["is_own", "upper", "lower"], keep="first")
    removed = corpus.removed_before().with_columns(is_own=polars.lit(False))
    documents = documents.join(removed, on=["is_own", "upper", "lower"], how="anti")
    counts = np.zeros(count, dtype=bool)
    counts[documents["number"].to_numpy()] = True
    return counts


def _halves(files: SignatureFiles, column: str) -> polars.DataFrame:
    parts = [
        polars.DataFrame({"upper": upper, "lower": lower}) for upper, lower in files.keys(column)
    ]
    return polars.concat(parts)
