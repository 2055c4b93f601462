"""What decontamination hit: for each evaluation set, how much of it stands in the corpus."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from web2gpt.io.made import made_by

EXAMPLES = 20  # phrases told, of each set and fate


def report_hits(ngrams: Path, common: int) -> dict[str, Any]:
    """{"common": limit, "sets": {file: {"ngrams", "in_corpus", "cut", "common", "occurrences",
    "cut_most", "common_most"}}}; the last two list phrases with their counts in the corpus,
    commonest first. An n-gram that stands in several sets counts in each."""
    with made_by("decontaminate count", ngrams):
        rows = pq.read_table(ngrams, columns=["ngram", "files", "count"]).to_pylist()
    names = dict.fromkeys(name for row in rows for name in row["files"])
    sets = {name: _report_set([row for row in rows if name in row["files"]], common)
            for name in names}  # fmt: skip
    return {"common": common, "sets": sets}


def _report_set(rows: list[dict[str, Any]], common: int) -> dict[str, Any]:
    found = [row for row in rows if row["count"] > 0]
    cut = [row for row in found if row["count"] < common]
    left = [row for row in found if row["count"] >= common]
    return {
        "ngrams": len(rows),
        "in_corpus": len(found),
        "cut": len(cut),
        "common": len(left),
        "occurrences": sum(row["count"] for row in found),
        "cut_most": _commonest(cut),
        "common_most": _commonest(left),
    }


def _commonest(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    chosen = sorted(rows, key=lambda row: (-row["count"], row["ngram"]))[:EXAMPLES]
    return [{"phrase": row["ngram"], "count": row["count"]} for row in chosen]
