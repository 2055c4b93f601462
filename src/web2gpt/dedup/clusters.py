"""Step 4, one job: from verified pairs to clusters.parquet, which says what becomes of each
document.

The result depends on the documents alone: not on shards, their order, cores or hash seeds.
"""

from pathlib import Path

import numpy as np

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.candidates import Ranking, split
from web2gpt.dedup.census import Census, Numbers, take_census
from web2gpt.dedup.corpus import Corpus, Shards
from web2gpt.dedup.grouping import Grouping, group
from web2gpt.dedup.keep_rule import rank
from web2gpt.dedup.pairs import read_pairs
from web2gpt.dedup.sets import Similarities
from web2gpt.dedup.verdicts import Verdicts, write_verdicts
from web2gpt.dedup.verify import Measured, measure_all
from web2gpt.io.work import WorkFolder


def find_clusters(shards: Shards, pairs: Path, output: Path, work: Path, settings: Dedup) -> None:
    """Choose which of the near-duplicates stay.

    Documents are read again only for ``cluster: components``, where a chain joins texts that were
    never compared.
    """
    corpus = Corpus.open(shards, settings)
    with WorkFolder(work, corpus.job("clusters", [pairs])) as folder:
        if folder.is_published([output]):
            return
        draft = folder.path / "clusters.parquet"
        summary = _write(corpus, pairs, folder.path, draft)
        folder.publish({draft: output})
    print(summary, flush=True)


def _write(corpus: Corpus, pairs: Path, folder: Path, draft: Path) -> str:
    census = take_census(corpus)
    ranking, measured = _ranked(corpus, census, pairs)
    star = corpus.settings.cluster == "star"
    grouping = group(measured.pairs, len(ranking.best), star=star)
    likeness = _likeness(corpus, census.first[ranking.text], grouping, measured, folder)
    verdicts = _judge(census, ranking, grouping, likeness)
    write_verdicts(verdicts, census, corpus.files, draft)
    removed = verdicts.removed[: census.own]
    exact = census.text_of[verdicts.kept[: census.own]] == census.text_of[: census.own]
    copies = int(exact[removed].sum())
    return (
        f"dedup: {census.own:,} documents; {copies:,} exact and "
        f"{int(removed.sum()) - copies:,} near duplicates to remove"
    )


def _ranked(corpus: Corpus, census: Census, path: Path) -> tuple[Ranking, Measured]:
    """The texts that have copies, ranked, and the verified pairs of their ranks."""
    one, other, similarities, exact = read_pairs(path, corpus)
    involved = (census.copies > 1) & census.is_new
    involved[census.text_of[one]] = True
    involved[census.text_of[other]] = True
    ranking = rank(corpus, census, involved)
    ranks = (ranking.rank_of[census.text_of[side]].astype(np.uint64) for side in (one, other))
    better, worse = ranks
    pairs = (better << np.uint64(32)) | worse
    order = np.argsort(pairs)
    return ranking, Measured(pairs[order], similarities[order], exact[order])


def _likeness(
    corpus: Corpus, sources: Numbers, grouping: Grouping, measured: Measured, folder: Path
) -> Similarities:
    """The similarity of each rank with the one kept for it; 1 with itself."""
    count, pairs = len(sources), measured.pairs
    ranks = np.arange(count, dtype=np.uint32)
    likeness = np.ones(count)
    removed = ranks[grouping.kept != ranks]
    wanted = (grouping.kept[removed].astype(np.uint64) << np.uint64(32)) | removed
    place = np.minimum(np.searchsorted(pairs, wanted), max(len(pairs) - 1, 0))
    known = pairs[place] == wanted if len(wanted) else np.empty(0, bool)
    likeness[removed[known]] = measured.similarities[place[known]]
    if not known.all():  # components: joined by a chain, never compared
        unknown = np.sort(wanted[~known])
        _, worse = split(unknown)
        likeness[worse] = measure_all(corpus, sources, unknown, folder).similarities
    return likeness


def _judge(
    census: Census, ranking: Ranking, grouping: Grouping, likeness: Similarities
) -> Verdicts:
    """From texts back to documents."""
    cluster = np.arange(len(census.text_of), dtype=np.uint32)
    kept, similarity = cluster.copy(), np.ones(len(cluster))
    order, best = ranking.order, ranking.best
    ranks = ranking.rank_of[census.text_of[order]]
    cluster[order] = best[grouping.cluster[ranks]]
    kept[order] = best[grouping.kept[ranks]]
    similarity[order] = likeness[ranks]
    return Verdicts(cluster, kept, similarity)
