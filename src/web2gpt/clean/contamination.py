"""Decontamination in two passes: count evaluation n-grams over the corpus, then cut them out.

The method is Megatron-LM's ``filter_ngrams``, which follows GPT-3's (Brown et al. 2020, appendix
C): n-grams that the whole corpus holds often are common phrases and stay; around the others the
text is cut, so many characters on either side and on to the end of a sentence.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from web2gpt.clean.evaluation_sets import evaluation_ngrams
from web2gpt.clean.folded_words import folded_words, word_spans
from web2gpt.clean.ngrams import Match, Ngram, NgramFinder
from web2gpt.config.clean import Decontaminate
from web2gpt.errors import InputError
from web2gpt.io.atomic import atomic_write
from web2gpt.io.documents import fault_of
from web2gpt.io.made import made_by
from web2gpt.io.progress import ProgressLine
from web2gpt.io.shards import BadLine, Document, read_shard
from web2gpt.io.stage import ShardJob
from web2gpt.web.ids import document_id

SENTENCE_ENDS = ".!?"
SCHEMA = pa.schema(
    {"ngram": pa.string(), "words": pa.int32(), "files": pa.list_(pa.string()), "count": pa.int64()}
)

Span = tuple[int, int]
Counts = np.ndarray[tuple[int], np.dtype[np.int64]]


def count_ngrams(documents: Sequence[Path], settings: Decontaminate, work: Path) -> pa.Table:
    """How often the documents hold each n-gram of the evaluation sets: ngram, words, files, count.

    The counts of each shard are kept in ``work``, where a rerun finds them. Memory is the
    evaluation sets', whatever the corpus. Raises ``InputError``.
    """
    found = evaluation_ngrams(settings)
    finder = NgramFinder(found)
    total = np.zeros(len(finder.ngrams), dtype=np.int64)
    with ProgressLine("decontaminate count", unit="documents") as progress:
        for number, path in enumerate(documents):
            kept = work / f"counts-{number:04d}.npy"
            if not kept.exists():
                with atomic_write(kept) as file:
                    np.save(file, _count_shard(path, finder, progress))
            total += np.load(kept)
    columns = {
        "ngram": [" ".join(ngram) for ngram in found],
        "words": [len(ngram) for ngram in found],
        "files": list(found.values()),
        "count": total,
    }
    return pa.table(columns, schema=SCHEMA)


def _count_shard(path: Path, finder: NgramFinder, progress: ProgressLine) -> Counts:
    counts = np.zeros(len(finder.ngrams), dtype=np.int64)
    for record in read_shard(path):
        if isinstance(record, BadLine):
            continue  # cutting will count it
        if isinstance(record.get("text"), str):
            for match in finder.find(folded_words(record["text"])):
                counts[match.ngram] += 1
        progress.advance()
    return counts


def add_counts(paths: Sequence[Path]) -> pa.Table:
    """The sum of tables of ``count_ngrams`` over parts of a corpus. Raises ``InputError`` if they
    are not of the same n-grams."""
    total = _read_counts(paths[0])
    for path in paths[1:]:
        table = _read_counts(path)
        if not table["ngram"].equals(total["ngram"]):
            raise InputError(
                f"{path}: counts other n-grams than {paths[0]}; count all shards against the same "
                "evaluation sets, with the same settings."
            )
        summed = pc.add(total["count"], table["count"])
        total = total.set_column(
            total.schema.get_field_index("count"), SCHEMA.field("count"), summed
        )
    return total


def _read_counts(path: Path) -> pa.Table:
    with made_by("decontaminate count", path):
        return pq.read_table(path, columns=SCHEMA.names)


def write_ngrams(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd", store_schema=False)


def cut_documents(job: ShardJob, ngrams: Path, settings: Decontaminate) -> None:
    """Cut the n-grams out of the job's documents. Figures: documents cut, pieces, matches, also
    for each evaluation set, characters cut. A rejected document tells its first match."""
    rare = rare_ngrams(ngrams, settings.common)
    finder = NgramFinder(rare)
    for document in job.documents():
        if fault := fault_of(document):
            job.error(document, fault)
            continue
        matches = finder.find(folded_words(document["text"]))
        if not matches:
            job.keep(document)
            continue
        phrases = [finder.ngrams[match.ngram] for match in matches]
        for name in (name for phrase in phrases for name in rare[phrase]):
            job.statistics.figures[f"matches of {name}"] += 1
        pieces = cut(document["text"], spans_of(document["text"], matches), settings)
        _decide(job, document, pieces, [" ".join(phrase) for phrase in phrases], settings)


def _decide(
    job: ShardJob,
    document: Document,
    pieces: list[str],
    phrases: list[str],
    settings: Decontaminate,
) -> None:
    """Keep the pieces of a document in which these phrases stand, or drop it."""
    if not pieces:
        job.drop(document, "nothing_left", len(phrases), phrase=phrases[0])
    elif len(pieces) > settings.max_pieces:
        job.drop(document, "many_pieces", len(pieces), phrase=phrases[0])
    else:
        job.keep(*_documents(document, pieces))
        _add_figures(job, document, pieces, len(phrases))


def rare_ngrams(path: Path, common: int) -> dict[Ngram, list[str]]:
    """The n-grams seen less than ``common`` times in the corpus, each with the evaluation sets it
    stands in; those never seen are left out."""
    table = _read_counts(path)
    return {
        tuple(row["ngram"].split(" ")): row["files"]
        for row in table.to_pylist()
        if 0 < row["count"] < common
    }


def spans_of(text: str, matches: list[Match]) -> list[Span]:
    """Where the matches stand in the text: begin and end in characters, by begin."""
    places = word_spans(text) if matches else []
    return [(places[match.start][0], places[match.end - 1][1]) for match in matches]


def cut(text: str, spans: Iterable[Span], settings: Decontaminate) -> list[str]:
    """What is left of a text around the spans, in pieces; short pieces are left out.

    Of spans that begin together the longest counts; one that begins in what an earlier one took
    away is no match any more.
    """
    pieces, begin = [], 0
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start < begin:
            continue
        pieces.append(text[begin : _sentence_end_before(text, begin, start - settings.margin)])
        begin = _sentence_end_after(text, end + settings.margin)
    pieces.append(text[begin:])
    stripped = (piece.strip() for piece in pieces)
    return [piece for piece in stripped if piece and len(piece) >= settings.min_characters]


def _sentence_end_before(text: str, begin: int, place: int) -> int:
    """The last place up to ``place`` after which a sentence has ended; ``begin`` if none has."""
    ends = (text.rfind(mark, begin, max(begin, place)) + 1 for mark in SENTENCE_ENDS)
    return max(begin, *ends)


def _sentence_end_after(text: str, place: int) -> int:
    """The first place from ``place`` on after which a sentence has ended, or the text's end."""
    ends = [end for mark in SENTENCE_ENDS if (end := text.find(mark, place) + 1)]
    return min(ends, default=len(text))


def _documents(document: Document, pieces: list[str]) -> list[Document]:
    """The pieces as documents of their own, with ids made from the whole's."""
    whole = document["id"]
    return [
        {**document, "id": document_id(whole, str(number)), "text": piece,
         "whole": whole, "piece": number}
        for number, piece in enumerate(pieces, 1)
    ]  # fmt: skip


def _add_figures(job: ShardJob, document: Document, pieces: list[str], matches: int) -> None:
    figures = job.statistics.figures
    figures["documents_cut"] += 1
    figures["pieces"] += len(pieces)
    figures["matches"] += matches
    figures["characters_cut"] += len(document["text"]) - sum(map(len, pieces))
