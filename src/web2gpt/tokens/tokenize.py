"""The stage tokenize: from the corpus to Megatron's .bin/.idx.

Threads encode frames, several at a time and never more than twice their number ahead; one writer
takes the results in order. Invariants: document i of the .idx is row i of documents.parquet; the
bytes do not depend on the number of threads; .idx is published after .bin. Memory: the frames
under way, and some bytes a document.
"""

from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import orjson
import pyarrow
import pyarrow.parquet

from web2gpt.config.tokens import Tokenize
from web2gpt.config.versions import VERSIONS
from web2gpt.io.atomic import atomic_write, write_json
from web2gpt.io.frames import Frame, read_frame, read_frames
from web2gpt.io.progress import ProgressLine
from web2gpt.io.shards import Document, JsonlWriter
from web2gpt.io.statistics import Statistics
from web2gpt.io.work import WorkFolder, file_states
from web2gpt.tokens.encoder import Encoder, with_eod
from web2gpt.tokens.parts import (
    SCHEMA,
    Part,
    join_documents,
    join_index,
    join_rejected,
    join_statistics,
    join_tokens,
    plan_parts,
)
from web2gpt.tokens.provenance import describe, manifest_path
from web2gpt.tokens.vocabulary import Vocabulary

NAMES = ("id", "url", "source")  # of a document, text or null


@dataclass(frozen=True)
class TokenizeFiles:
    """Where the stage reads (the first three) and writes."""

    corpus: Path
    frames: Path
    tokenizer: Path
    bin: Path
    idx: Path
    documents: Path
    rejected: Path
    stats: Path
    work: Path

    @property
    def manifest(self) -> Path:
        """Beside the pair; see provenance.py."""
        return manifest_path(self.bin.with_suffix(""))

    @property
    def outputs(self) -> tuple[Path, ...]:
        return self.bin, self.documents, self.rejected, self.stats, self.manifest, self.idx


@dataclass
class Encoded:
    """The documents of one frame: ids, lengths and names of those kept, records of the others."""

    ids: Any
    lengths: Any
    columns: dict[str, list[Any]]
    rejected: list[Document] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    figures: Counter[str] = field(default_factory=Counter)


def tokenize(
    files: TokenizeFiles, settings: Tokenize, *, key: str, threads: int, rejected_text: bool
) -> None:
    """Run the stage; ``key`` is the field of a document that is encoded."""
    job = {
        "stage": "tokenize",
        "version": VERSIONS["tokenize"],
        "settings": settings.model_dump(mode="json"),
        "key": key,
        "rejected_text": rejected_text,
        "inputs": file_states([files.corpus, files.frames, files.tokenizer]),
    }
    start = monotonic()
    with WorkFolder(files.work, job) as work:
        if work.is_published(files.outputs):
            return
        vocabulary = Vocabulary.load(files.tokenizer)
        frames = read_frames(files.frames, files.corpus)
        parts = plan_parts(work.path, frames, settings.part_bytes)
        encoder = Encoder(files.tokenizer, vocabulary)
        encoder.check(["".join(vocabulary.special), vocabulary.eod])
        maker = PartMaker(
            files.corpus, encoder, vocabulary, settings, key=key, rejected_text=rejected_text
        )
        with (
            ProgressLine("tokenize", unit="documents", total=_documents(frames)) as progress,
            closing(maker.encode_all(_left(parts), threads)) as encoded,
        ):
            for part in parts:
                if part.is_done:
                    progress.advance(_documents(part.frames))
                else:
                    maker.make(part, encoded, progress)
        made_with = describe(vocabulary, key=key, append_eod=settings.append_eod)
        _publish(work, files, parts, made_with, start)


class PartMaker:
    """Makes the files of a part; one for the whole run."""

    def __init__(
        self,
        corpus: Path,
        encoder: Encoder,
        vocabulary: Vocabulary,
        settings: Tokenize,
        *,
        key: str,
        rejected_text: bool,
    ):
        self._corpus, self._encoder, self._vocabulary = corpus, encoder, vocabulary
        self._eod = vocabulary.eod_id if settings.append_eod else None
        self._key, self._rejected_text = key, rejected_text

    def make(self, part: Part, frames: Iterator[Encoded], progress: ProgressLine) -> None:
        """Write the part, whose frames come next in ``frames``; its counts are written last."""
        statistics = Statistics("tokenize", "documents")
        statistics.bytes_in = sum(frame.size for frame in part.frames)
        lengths, names = [np.empty(0, "<i4")], [SCHEMA.empty_table()]
        with (
            atomic_write(part.file("bin")) as tokens,
            JsonlWriter(part.file("rejected.jsonl.zst")) as rejected,
        ):
            for encoded in islice(frames, len(part.frames)):
                tokens.write(encoded.ids)
                lengths.append(encoded.lengths)
                names.append(pyarrow.table(encoded.columns, schema=SCHEMA))
                for record in encoded.rejected:
                    rejected.write(record)
                _count(statistics, encoded)
                progress.advance(len(encoded.lengths) + len(encoded.rejected))
        with atomic_write(part.file("lengths.npy")) as file:
            np.save(file, np.concatenate(lengths))
        with atomic_write(part.file("parquet")) as file:
            pyarrow.parquet.write_table(pyarrow.concat_tables(names), file, compression="zstd")
        statistics.write(part.file("json"))

    def encode_all(self, frames: Iterable[Frame], threads: int) -> Generator[Encoded]:
        """The frames' documents in order, encoded ``threads`` frames at a time: the next ones too
        while a part is being finished."""
        waiting: deque[Future[Encoded]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for frame in frames:
                    waiting.append(pool.submit(self.encode, frame))
                    if len(waiting) >= 2 * threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def encode(self, frame: Frame) -> Encoded:
        """Encode one frame; one of its texts is checked against the reference."""
        result = Encoded(None, None, {})
        kept: list[Document] = []
        for number, line in enumerate(read_frame(self._corpus, frame)):
            document, fault = self._read(line)
            if fault:
                result.errors[fault] += 1
                at = frame.first_document + number + 1
                result.rejected.append(self._reject(document, fault, at))
            elif not document[self._key]:
                result.dropped["empty"] += 1
                at = frame.first_document + number + 1
                result.rejected.append(self._reject(document, "empty", at))
            else:
                kept.append(document)
        result.columns = _columns(kept)
        texts = [document[self._key] for document in kept]
        ids, offsets = self._encoder.encode(texts)
        self._encoder.check(texts[:1])
        result.ids, result.lengths = with_eod(ids, offsets, self._eod, self._vocabulary.dtype)
        result.figures["tokens"] = len(result.ids)
        result.figures["text_bytes"] = sum(map(_utf8_size, texts))
        return result

    def _read(self, line: bytes) -> tuple[Document, str]:
        """The record of a line, and what is wrong with it, if anything is."""
        try:
            document = orjson.loads(line)
        except orjson.JSONDecodeError:
            return {}, "not_json"
        if not isinstance(document, dict):
            return {}, "not_an_object"
        return document, "" if isinstance(document.get(self._key), str) else "no_text"

    def _reject(self, document: Document, reason: str, line: int) -> Document:
        record = {"id": document.get("id"), "url": document.get("url"), "reason": reason}
        record |= {"file": str(self._corpus), "line": line, "figure": None}
        if self._rejected_text and "text" in document:
            record["text"] = document["text"]
        return record


def _publish(
    work: WorkFolder,
    files: TokenizeFiles,
    parts: list[Part],
    made_with: dict[str, Any],
    start: float,
) -> None:
    """Join the parts and move the results to their places, .idx last."""
    drafts = {work.path / path.name: path for path in files.outputs}
    tokens, documents, rejected, stats, manifest, idx = drafts
    statistics = join_statistics(parts)
    join_tokens(parts, tokens)
    join_documents(parts, documents)
    join_rejected(parts, rejected)
    dtype = np.dtype(made_with["tokenizer"]["dtype"])
    join_index(parts, idx, dtype)
    statistics.bytes_out = tokens.stat().st_size
    statistics.time["seconds"] = monotonic() - start
    statistics.write(stats)
    counts = {"documents": statistics.kept, "tokens": statistics.figures["tokens"]}
    write_json(manifest, made_with | counts)
    work.check()
    files.idx.unlink(missing_ok=True)  # never an old .idx beside a new .bin
    work.publish(drafts)
    print(
        f"{statistics.summary()}; {statistics.figures['tokens']:,} tokens as "
        f"{dtype.name}, vocabulary {made_with['tokenizer']['vocab_size']:,}",
        flush=True,
    )


def _count(statistics: Statistics, encoded: Encoded) -> None:
    statistics.kept += len(encoded.lengths)
    statistics.out += len(encoded.lengths)
    statistics.read += len(encoded.lengths) + len(encoded.rejected)
    statistics.dropped += encoded.dropped
    statistics.errors += encoded.errors
    statistics.figures.update(encoded.figures)


def _left(parts: list[Part]) -> list[Frame]:
    """The frames of the parts that are not done."""
    return [frame for part in parts if not part.is_done for frame in part.frames]


def _documents(frames: list[Frame] | tuple[Frame, ...]) -> int:
    return sum(frame.documents for frame in frames)


def _columns(documents: list[Document]) -> dict[str, list[Any]]:
    """Names of documents as the columns of documents.parquet."""
    columns: dict[str, list[Any]] = {}
    for name in NAMES:
        column = [document.get(name) for document in documents]
        is_plain = all(map((str, type(None)).__contains__, map(type, column)))
        columns[name] = column if is_plain else [_string(value) for value in column]
    columns["held_out"] = [document.get("held_out") is True for document in documents]
    return columns


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _string(value: object) -> str | None:
    return value if isinstance(value, str) or value is None else str(value)
