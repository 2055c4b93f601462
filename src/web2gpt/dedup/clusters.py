"""Steps 2 to 4 over all shards: from signatures to clusters.parquet.

What a step has made lies in the work folder, so that a killed run goes on with the step it was at:

    keys.npy          band keys [bands, texts], uint64
    candidates.npy    pairs of ranks, uint64
    verified.npy      the pairs at or above the threshold, and their similarities

The result depends on the documents alone: not on shards, their order, cores or hash seeds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from web2gpt.config.dedup import Dedup
from web2gpt.config.versions import VERSIONS
from web2gpt.dedup.bands import Bands
from web2gpt.dedup.candidates import (
    Pairs,
    Ranking,
    bucketed,
    candidate_pairs,
    split,
    write_keys,
)
from web2gpt.dedup.census import NOBODY, Census, Numbers, take_census
from web2gpt.dedup.grouping import Grouping, group
from web2gpt.dedup.keep_rule import in_order
from web2gpt.dedup.shingles import Shingler
from web2gpt.dedup.signature_files import SignatureFiles
from web2gpt.dedup.verdicts import Verdicts, write_verdicts
from web2gpt.dedup.verify import (
    ShingleSets,
    Similarities,
    estimates,
    gather_signatures,
    worth_verifying,
    write_sets,
)
from web2gpt.errors import InputError
from web2gpt.io.atomic import temporary_name
from web2gpt.io.progress import ProgressLine
from web2gpt.io.work import WorkFolder, file_states


@dataclass(frozen=True)
class Corpus:
    """What the steps work on."""

    files: SignatureFiles
    documents: tuple[Path, ...]
    settings: Dedup
    folder: Path


def find_clusters(
    signatures: Sequence[Path], documents: Sequence[Path], output: Path, work: Path, settings: Dedup
) -> None:
    """Find the near-duplicates among the documents of all shards, and choose which stay.

    ``documents`` are the shards that ``signatures`` were made from, in the same order.
    """
    if len(signatures) != len(documents):
        raise InputError(
            f"{len(signatures)} signature files but {len(documents)} shards of documents; "
            "give one --documents for each --signatures, in the same order."
        )
    job = {
        "step": "clusters",
        "version": VERSIONS["dedup"],
        "settings": settings.model_dump(mode="json"),
        "inputs": [file_states([path]) for path in (*signatures, *documents)],
    }
    with WorkFolder(work, job) as folder:
        if folder.is_published([output]):
            return
        files = SignatureFiles.open(signatures, settings)
        draft = folder.path / "clusters.parquet"
        summary = _run(Corpus(files, tuple(documents), settings, folder.path), draft)
        folder.publish({draft: output})
    print(summary, flush=True)


def _run(corpus: Corpus, draft: Path) -> str:
    bands = Bands.of(corpus.settings)
    print(f"dedup: {bands.describe()}", flush=True)
    census = take_census(corpus.files)
    ranking, candidates = _candidates(corpus, census, bands)
    best = ranking.best
    pairs, similarities = _verified(corpus, best, candidates)
    grouping = group(pairs, len(best), star=corpus.settings.cluster == "star")
    likeness = _likeness(corpus, grouping, best, pairs, similarities)
    verdicts = _judge(census, ranking, grouping, likeness)
    write_verdicts(verdicts, census, corpus.files, draft)
    removed = verdicts.removed
    exact = int((census.text_of[verdicts.kept] == census.text_of)[removed].sum())
    return (
        f"dedup: {census.documents:,} documents, {len(candidates):,} candidate pairs, "
        f"{len(pairs):,} verified; {exact:,} exact and {int(removed.sum()) - exact:,} near "
        "duplicates to remove"
    )


def _candidates(corpus: Corpus, census: Census, bands: Bands) -> tuple[Ranking, Pairs]:
    """The documents that have copies or bucket mates, ranked, and the candidate pairs of ranks."""
    path = corpus.folder / "keys.npy"
    if not path.exists():
        write_keys(corpus.files, census, bands, path)
    keys = np.load(path, mmap_mode="r")
    involved = bucketed(keys, census) | (census.copies > 1)
    alive = census.text_of != NOBODY
    alive[alive] = involved[census.text_of[alive]]
    ranking = Ranking.of(census, in_order(corpus.files, alive, corpus.settings))
    path = corpus.folder / "candidates.npy"
    return ranking, _kept_array(path, lambda: candidate_pairs(keys, census, ranking.rank_of))


def _verified(corpus: Corpus, best: Numbers, candidates: Pairs) -> tuple[Pairs, Similarities]:
    """The candidates at or above the threshold, and their similarities."""

    def verify() -> NDArray[Any]:
        pairs, similarities = _measured(corpus, best, candidates)
        enough = similarities >= corpus.settings.threshold
        return np.rec.fromarrays(
            [pairs[enough], similarities[enough]], dtype=[("pair", "<u8"), ("similarity", "<f8")]
        )

    table = _kept_array(corpus.folder / "verified.npy", verify)
    return table["pair"].copy(), table["similarity"].copy()


def _measured(corpus: Corpus, best: Numbers, pairs: Pairs) -> tuple[Pairs, Similarities]:
    """Those of ``pairs`` that may reach the threshold, and their similarities."""
    if not len(pairs):
        return pairs, np.empty(0)
    signatures = gather_signatures(corpus.files, best, corpus.folder / "signatures.npy")
    estimate = estimates(signatures, pairs)
    if corpus.settings.verify == "estimate":
        return pairs, estimate
    pairs = pairs[worth_verifying(estimate, corpus.settings)]
    return pairs, _exact(corpus, best, pairs)


def _exact(corpus: Corpus, best: Numbers, pairs: Pairs) -> Similarities:
    """The exact similarities of pairs of ranks."""
    ranks = np.unique(np.concatenate(split(pairs)))
    shingler = Shingler(corpus.settings.shingle, corpus.settings.ngram)
    sets = write_sets(corpus.files, corpus.documents, best[ranks], shingler, corpus.folder)
    starts, sizes = np.zeros(len(best), np.int64), np.zeros(len(best), np.int64)
    starts[ranks], sizes[ranks] = sets.starts, sets.sizes
    sets = ShingleSets(sets.hashes, starts, sizes)
    with ProgressLine("dedup verify", unit="pairs", total=len(pairs)) as progress:
        return sets.similarities(pairs, corpus.settings.jaccard, progress.advance)


def _likeness(
    corpus: Corpus, grouping: Grouping, best: Numbers, pairs: Pairs, similarities: Similarities
) -> Similarities:
    """The similarity of each rank with the one kept for it; 1 with itself."""
    ranks = np.arange(len(best), dtype=np.uint32)
    likeness = np.ones(len(best))
    removed = ranks[grouping.kept != ranks]
    wanted = (grouping.kept[removed].astype(np.uint64) << np.uint64(32)) | removed
    place = np.minimum(np.searchsorted(pairs, wanted), max(len(pairs) - 1, 0))
    known = pairs[place] == wanted if len(wanted) else np.empty(0, bool)
    likeness[removed[known]] = similarities[place[known]]
    if not known.all():  # components: joined by a chain, never compared
        unknown = np.sort(wanted[~known])
        _, worse = split(unknown)
        if corpus.settings.verify == "exact":
            likeness[worse] = _exact(corpus, best, unknown)
        else:
            path = corpus.folder / "signatures.npy"
            likeness[worse] = estimates(gather_signatures(corpus.files, best, path), unknown)
    return likeness


def _judge(
    census: Census, ranking: Ranking, grouping: Grouping, likeness: Similarities
) -> Verdicts:
    """From texts back to documents."""
    cluster = np.arange(census.documents, dtype=np.uint32)
    kept, similarity = cluster.copy(), np.ones(census.documents)
    order, best = ranking.order, ranking.best
    ranks = ranking.rank_of[census.text_of[order]]
    cluster[order] = best[grouping.cluster[ranks]]
    kept[order] = best[grouping.kept[ranks]]
    similarity[order] = likeness[ranks]
    return Verdicts(cluster, kept, similarity)


def _kept_array(path: Path, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """An array from the work folder, made and laid down there if it is not yet."""
    if not path.exists():
        draft = temporary_name(path)
        with draft.open("wb") as file:
            np.save(file, make())
        draft.rename(path)
    return cast(NDArray[Any], np.load(path))
