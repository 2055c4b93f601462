"""Step 3, one job: the pairs of texts whose similarity is verified at or above the threshold.

The file, parquet, has one row for each pair, sorted:

    one, other  uint32    documents by number (row over all signature files, in their order): for
                          each text the first that has it
    similarity  float64   at or above the threshold
    exact       bool      of the shingle sets; else the signatures' estimate

In the work folder lies what a killed job goes on from: candidates.npy, the pairs of ranks, and
signatures.npy, the signatures of their texts.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson
import polars
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.buckets import BucketFiles
from web2gpt.dedup.candidates import bucketed, candidate_pairs, split
from web2gpt.dedup.census import Numbers, take_census
from web2gpt.dedup.corpus import Corpus, Shards
from web2gpt.dedup.keep_rule import rank
from web2gpt.dedup.sets import Similarities
from web2gpt.dedup.verify import measure, standard_error
from web2gpt.errors import InputError
from web2gpt.io.atomic import temporary_name
from web2gpt.io.work import WorkFolder

COLUMNS = ("one", "other", "similarity", "exact")


def find_pairs(
    shards: Shards, buckets: Sequence[Path], output: Path, work: Path, settings: Dedup
) -> None:
    """Pair the texts of all buckets, and measure them."""
    corpus = Corpus.open(shards, settings)
    with WorkFolder(work, corpus.job("pairs", buckets)) as folder:
        if folder.is_published([output]):
            return
        files = BucketFiles.open(buckets, corpus.files, settings)
        draft = folder.path / "pairs.parquet"
        summary = _write(corpus, files, folder.path, draft)
        folder.publish({draft: output})
    print(summary, flush=True)


def _write(corpus: Corpus, buckets: BucketFiles, folder: Path, draft: Path) -> str:
    census = take_census(corpus)
    involved = bucketed(buckets, census)
    ranking = rank(corpus, census, involved)
    candidates = _kept_array(
        folder / "candidates.npy", lambda: candidate_pairs(buckets, census, ranking)
    )
    found = measure(corpus, census.first[ranking.text], candidates, folder)
    enough = found.similarities >= corpus.settings.threshold
    one, other = (census.first[ranking.text[side]] for side in split(found.pairs[enough]))
    columns = [one, other, found.similarities[enough], found.exact[enough]]
    table = polars.DataFrame(dict(zip(COLUMNS, columns, strict=True))).sort("one", "other")
    metadata = {"pairs": orjson.dumps({"starts": corpus.files.starts})}
    arrow = table.to_arrow().replace_schema_metadata(metadata)
    pyarrow.parquet.write_table(arrow, draft, compression="zstd")
    summary = f"dedup: {len(candidates):,} candidate pairs, {len(table):,} verified"
    if found.exact.all():
        return summary
    error = standard_error(corpus.settings.threshold, corpus.settings)
    return (
        f"{summary}; {int((~table['exact']).sum()):,} of them by the signatures' estimate, of "
        f"standard error {error:.3f} at {corpus.settings.threshold}"
    )


def read_pairs(
    path: Path, corpus: Corpus
) -> tuple[Numbers, Numbers, Similarities, NDArray[np.bool_]]:
    """The columns of the file.

    Raises ``InputError`` if the file is missing or of other signatures.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file; run dedup pairs first.")
    try:
        table = pyarrow.parquet.read_table(path, columns=list(COLUMNS))
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a file of pairs ({error}); make it again.") from error
    origin = orjson.loads((table.schema.metadata or {}).get(b"pairs", b"{}"))
    if origin != {"starts": list(corpus.files.starts)}:
        raise InputError(f"{path}: pairs of other signatures; run dedup pairs again.")
    one, other, similarity, exact = (table[name].to_numpy() for name in COLUMNS)
    return one, other, similarity, exact


def _kept_array(path: Path, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """An array from the work folder, made and laid down there if it is not yet."""
    if not path.exists():
        draft = temporary_name(path)
        with draft.open("wb") as file:
            np.save(file, make())
        draft.rename(path)
    return cast(NDArray[Any], np.load(path))
