"""Decontamination in two passes: count evaluation n-grams over the corpus, then cut them out.

The method is Megatron-LM's ``filter_ngrams``, which follows GPT-3's (Brown et al. 2020, appendix
C): n-grams that the whole corpus holds often are common phrases and stay; around the others the
text is cut, so many characters on either side and on to the end of a sentence.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from web2gpt.clean.evaluation_sets import evaluation_ngrams
from web2gpt.clean.ngrams import NgramFinder
from web2gpt.clean.words import folded_words, word_spans
from web2gpt.config.clean import Decontaminate
from web2gpt.errors import InputError
from web2gpt.io.progress import ProgressLine
from web2gpt.io.shards import BadLine, Document, read_jsonl
from web2gpt.io.stage import ShardJob
from web2gpt.web.ids import document_id

SENTENCE_ENDS = ".!?"
SCHEMA = pa.schema(
    {"ngram": pa.string(), "words": pa.int32(), "files": pa.list_(pa.string()), "count": pa.int64()}
)

Span = tuple[int, int]


def count_ngrams(documents: Sequence[Path], settings: Decontaminate) -> pa.Table:
    """How often the documents hold each n-gram of the evaluation sets: ngram, words, files, count.

    Memory is the evaluation sets', whatever the corpus. Raises ``InputError``.
    """
    found = evaluation_ngrams(settings)
    finder = NgramFinder(found)
    counts = np.zeros(len(finder.ngrams), dtype=np.int64)
    with ProgressLine("decontaminate count", unit="documents") as progress:
        for path in documents:
            for record in read_jsonl(path):
                if isinstance(record, BadLine):
                    raise InputError(f"{path}: line {record.line}: {record.reason}; make it again.")
                for match in finder.find(folded_words(record["text"])):
                    counts[match.ngram] += 1
                progress.advance()
    columns = {
        "ngram": [" ".join(ngram) for ngram in found],
        "words": [len(ngram) for ngram in found],
        "files": list(found.values()),
        "count": counts,
    }
    return pa.table(columns, schema=SCHEMA)


def write_ngrams(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd", store_schema=False)


def cut_documents(job: ShardJob, ngrams: Path, settings: Decontaminate) -> None:
    """Cut the n-grams out of the job's documents. Figures: documents cut, pieces, matches,
    characters cut."""
    finder = NgramFinder(rare_ngrams(ngrams, settings.common))
    for document in job.documents():
        text = document["text"]
        spans = find_spans(text, finder)
        if not spans:
            job.keep(document)
            continue
        pieces = cut(text, spans, settings)
        if not pieces:
            job.drop(document, "nothing_left", len(spans))
        elif len(pieces) > settings.max_pieces:
            job.drop(document, "many_pieces", len(pieces))
        else:
            job.keep(*_documents(document, pieces))
            _add_figures(job, document, pieces, len(spans))


def rare_ngrams(path: Path, common: int) -> Iterable[tuple[str, ...]]:
    """The n-grams seen less than ``common`` times in the corpus; those never seen are left out."""
    table = pq.read_table(path, columns=["ngram", "count"])
    pairs = zip(table["ngram"].to_pylist(), table["count"].to_pylist(), strict=True)
    return [tuple(ngram.split(" ")) for ngram, count in pairs if 0 < count < common]


def find_spans(text: str, finder: NgramFinder) -> list[Span]:
    """Where the finder's n-grams stand in the text: begin and end in characters, by begin."""
    matches = finder.find(folded_words(text))
    if not matches:
        return []
    places = word_spans(text)
    return [(places[match.start][0], places[match.end - 1][1]) for match in matches]


def cut(text: str, spans: Iterable[Span], settings: Decontaminate) -> list[str]:
    """What is left of a text around the spans, in pieces; short pieces are left out.

    A span that begins in what an earlier one took away is no match any more.
    """
    pieces, begin = [], 0
    for start, end in spans:
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
