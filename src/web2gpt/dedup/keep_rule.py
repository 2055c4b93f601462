"""Which of several copies stays: one strict order of all documents.

First those of earlier runs, which are kept already; then the sound ones (ftfy would not change
them, and they have the minimum length), then by the rule (longest, oldest, highest priority;
unknown dates and priorities last), then the longer, then by URL, then by id. Nothing of it depends
on shards, their order, or where a document stands in them; only records that share an id, an error
anyway, fall back on their place.
"""

import numpy as np
import polars
from numpy.typing import NDArray

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

    Memory: their URLs, ids and merits.
    """
    columns = ["id", "url", "characters", "date", "priority", "damaged"]
    parts = []
    for file in range(len(files.paths)):
        marked = polars.Series(alive[files.starts[file] : files.starts[file + 1]])
        if marked.any():
            parts.append(files.columns(file, columns).filter(marked))
    if not parts:
        return np.empty(0, dtype=np.uint32)
    characters, rule = polars.col("characters"), polars.col(RULE_COLUMN[settings.keep])
    ordered = polars.concat(parts).select(
        "number",
        (polars.col("number") < files.own).alias("new"),
        (polars.col("damaged") | (characters < settings.min_characters)).alias("last"),
        (rule if settings.keep == "oldest" else -rule).alias("rule"),
        (-characters).alias("shorter"),
        polars.col("url").fill_null(""),
        "id",
    )
    keys = ("new", "last", "rule", "shorter", "url", "id", "number")
    return ordered.sort(keys, nulls_last=True)["number"].to_numpy().astype(np.uint32)
