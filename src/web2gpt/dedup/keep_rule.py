"""Which of several copies stays: one strict order of all documents.

First the sound ones (ftfy would not change them, and they have the minimum length), then by the
rule (longest, oldest, highest priority; unknown dates and priorities last), then the longer, then
by URL, then by id. Nothing of it depends on shards, their order, or where a document stands in
them; only records that share an id, an error anyway, fall back on their place.
"""

import numpy as np
import polars
from numpy.typing import NDArray

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.signature_files import SignatureFiles

RULE_COLUMN = {"longest": "characters", "oldest": "date", "priority": "priority"}


def in_order(
    files: SignatureFiles, involved: NDArray[np.bool_], settings: Dedup
) -> NDArray[np.uint32]:
    """Numbers of the documents marked in ``involved`` [documents], the best first.

    Memory: their URLs, ids and merits.
    """
    columns = ["id", "url", "characters", "date", "priority", "damaged"]
    parts = []
    for file in range(len(files.paths)):
        marked = polars.Series(involved[files.starts[file] : files.starts[file + 1]])
        if marked.any():
            parts.append(files.columns(file, columns).filter(marked))
    if not parts:
        return np.empty(0, dtype=np.uint32)
    documents = polars.concat(parts).with_columns(
        (polars.col("damaged") | (polars.col("characters") < settings.min_characters)).alias("last")
    )
    rule = polars.col(RULE_COLUMN[settings.keep])
    ordered = documents.select(
        "number",
        "last",
        (rule if settings.keep == "oldest" else -rule).alias("rule"),
        (-polars.col("characters")).alias("shorter"),
        polars.col("url").fill_null(""),
        "id",
    ).sort("last", "rule", "shorter", "url", "id", "number", nulls_last=True)
    return ordered["number"].to_numpy().astype(np.uint32)
