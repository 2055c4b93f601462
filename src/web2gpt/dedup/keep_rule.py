"""Which of several copies stays: one strict order of all documents.

First those of earlier runs, which are kept already; then the sound ones (ftfy would not change
them, and they have the minimum length), then by the rule (longest, oldest, highest priority;
unknown dates and priorities last), then the longer, then by URL, then by id. Nothing of it depends
on shards, their order, or where a document stands in them; only records that share an id, an error
anyway, fall back on their place.
"""

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import compute
from pyarrow.parquet import read_table

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.candidates import Ranking
from web2gpt.dedup.census import NOBODY, Census, Numbers
from web2gpt.dedup.corpus import Corpus
from web2gpt.dedup.signature_files import SignatureFiles

RULE_COLUMN = {"longest": "characters", "oldest": "date", "priority": "priority"}


def rank(corpus: Corpus, census: Census, involved: NDArray[np.bool_]) -> Ranking:
    """Rank the texts marked in ``involved`` [texts], and their documents."""
    alive = census.text_of != NOBODY
    alive[alive] = involved[census.text_of[alive]]
    return Ranking.of(census, _in_order(corpus.files, alive, corpus.settings))


def _in_order(files: SignatureFiles, alive: NDArray[np.bool_], settings: Dedup) -> Numbers:
    """Numbers of the documents marked in ``alive`` [documents], the best first.

    Memory: their URLs, ids and merits, and 8 bytes each for their order.
    """
    columns = ["id", "url", "characters", "date", "priority", "damaged"]
    parts = [
        read_table(path, columns=columns, use_threads=False).filter(pyarrow.array(alive[start:end]))
        for path, start, end in zip(files.paths, files.starts, files.starts[1:], strict=False)
        if alive[start:end].any()
    ]
    numbers = np.flatnonzero(alive).astype(np.uint32)
    if not parts:
        return numbers
    documents = pyarrow.concat_tables(parts)
    characters, rule = documents["characters"], documents[RULE_COLUMN[settings.keep]]
    short = compute.less(characters, settings.min_characters)
    keys = {
        "new": pyarrow.array(numbers < files.own),
        "last": compute.or_(documents["damaged"], short),
        "rule": rule if settings.keep == "oldest" else compute.negate(rule),
        "shorter": compute.negate(characters),
        "url": compute.fill_null(documents["url"], ""),
        "id": documents["id"],
        "number": pyarrow.array(numbers),
    }
    ascending = [(name, "ascending") for name in keys]
    order = compute.sort_indices(pyarrow.table(keys), ascending)  # nulls last
    best_first: Numbers = numbers[order.to_numpy()]
    return best_first
