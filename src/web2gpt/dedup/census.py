"""Who is there: documents, and the distinct texts among them.

Documents with the same normalised text (the same digest) form one *text*. A text has one
signature and one set of shingles, whichever of its documents they are taken from, so only texts
meet in buckets: a page that stands there 100,000 times costs one. Memory: some 60 bytes a document.
"""

from dataclasses import dataclass

import numpy as np
import polars
from numpy.typing import NDArray

from web2gpt.dedup.signature_files import SignatureFiles

Numbers = NDArray[np.uint32]
NOBODY = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True)
class Census:
    """Documents by number (position over all files), texts by number (order of appearance)."""

    text_of: Numbers  # [documents]; NOBODY for the second document of an id
    first: Numbers  # [texts] the text's first document
    copies: Numbers  # [texts] how many documents have it
    long_enough: NDArray[np.bool_]  # [texts] whether it has a shingle

    @property
    def documents(self) -> int:
        return len(self.text_of)


def take_census(files: SignatureFiles) -> Census:
    """Number the distinct texts.

    Of several documents with one id the first counts; ``merge`` makes errors of the others.
    """
    documents = _halves(files, "id").with_row_index("number")
    documents = documents.unique(["upper", "lower"], keep="first").select("number")
    alive = np.zeros(files.count, dtype=bool)
    alive[documents["number"].to_numpy()] = True

    digests = _halves(files, "digest").with_row_index("number").filter(polars.Series(alive))
    texts = (
        digests.group_by("upper", "lower")
        .agg(polars.col("number").min().alias("first"), polars.len().alias("copies"))
        .sort("first")
        .with_row_index("text")
    )
    pairs = digests.join(texts.select("upper", "lower", "text"), on=["upper", "lower"])
    text_of = np.full(files.count, NOBODY, dtype=np.uint32)
    text_of[pairs["number"].to_numpy()] = pairs["text"].to_numpy()
    first = texts["first"].to_numpy().astype(np.uint32)
    return Census(
        text_of, first, texts["copies"].to_numpy().astype(np.uint32), _shingled(files)[first]
    )


def _halves(files: SignatureFiles, column: str) -> polars.DataFrame:
    parts = [
        polars.DataFrame({"upper": upper, "lower": lower}) for upper, lower in files.keys(column)
    ]
    return polars.concat(parts)


def _shingled(files: SignatureFiles) -> NDArray[np.bool_]:
    """Whether each document has a shingle."""
    parts = [files.columns(file, ["shingles"])["shingles"] > 0 for file in range(len(files.paths))]
    return polars.concat(parts).to_numpy()
