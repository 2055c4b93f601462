"""The corpus: one .jsonl.zst of many zstd frames, and beside it the index of its frames.

Any zstd reader takes the file for one stream of JSON lines. With the index, a process can also
decompress any frame alone, so that tokenizing spreads over cores and a document is found by its
number. Invariant: a frame holds whole lines, at least one; frames stand back to back in the order
of the documents; the same records and frame size give the same bytes. Each row of the index
carries a hash of its frame's bytes: an index and a corpus that do not belong together are found
out when the file is opened or, at the latest, when the frame is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import orjson
import pyarrow
import pyarrow.parquet
import zstandard

from web2gpt.errors import InputError
from web2gpt.io.atomic import publish, temporary_name
from web2gpt.io.shards import LEVEL, Document

SCHEMA = pyarrow.schema(
    [
        ("offset", pyarrow.int64()),
        ("size", pyarrow.int64()),
        ("first_document", pyarrow.int64()),
        ("documents", pyarrow.int64()),
        ("text_bytes", pyarrow.int64()),
        ("digest", pyarrow.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a frame lies in the corpus and what it holds."""

    offset: int  # bytes from the beginning of the file
    size: int  # compressed bytes
    first_document: int  # number of its first document in the corpus, from 0
    documents: int
    text_bytes: int  # UTF-8 bytes of the documents' texts, without the JSON around them
    digest: str  # blake2b-64, in hex, of the compressed bytes


class FrameWriter:
    """Write documents to ``corpus`` and the index to ``frames``; both appear only if all went well.

    A frame ends with the document that brings its text to ``frame_bytes``. Memory: one frame.
    """

    def __init__(self, corpus: Path, frames: Path, frame_bytes: int):
        self.corpus, self.frames = corpus, frames
        self.count = 0
        self._frame_bytes = frame_bytes
        self._written: list[Frame] = []
        self._offset = 0
        corpus.parent.mkdir(parents=True, exist_ok=True)
        self._temporary = temporary_name(corpus)
        self._file = self._temporary.open("wb")
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        self._begin()

    def write(self, document: Document) -> None:
        """Add a document; its ``text`` counts towards the size of the frame."""
        self._lines += orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
        self._text_bytes += len(document["text"].encode())
        self.count += 1
        if self._text_bytes >= self._frame_bytes:
            self._end()

    def write_frame(self, data: bytes, documents: int, text_bytes: int) -> None:
        """Add a frame that is compressed already, of so many documents, a line each."""
        self._end()
        self._file.write(data)
        self.count += documents
        self._note(data, text_bytes)
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        try:
            if kind is None:
                self._end()
                self._file.close()
                publish(self._temporary, self.corpus)
                _write_index(self.frames, self._written)
        finally:
            self._file.close()
            self._temporary.unlink(missing_ok=True)

    def _begin(self) -> None:
        self._lines = bytearray()
        self._text_bytes = 0
        self._first = self.count

    def _end(self) -> None:
        """Compress and write the frame at hand, if it has a document."""
        if self.count > self._first:
            data = self._compressor.compress(self._lines)
            self._file.write(data)
            self._note(data, self._text_bytes)
            self._begin()

    def _note(self, data: bytes, text_bytes: int) -> None:
        """Enter the frame just written, of the documents since the last one, into the index."""
        count = self.count - self._first
        self._written.append(
            Frame(self._offset, len(data), self._first, count, text_bytes, _digest(data))
        )
        self._offset += len(data)


def read_frames(frames: Path, corpus: Path) -> list[Frame]:
    """The index of ``corpus``, in order.

    Raises ``InputError`` if either file is missing, the index is not one, or its frames do not
    cover exactly the corpus.
    """
    for path in (frames, corpus):
        if not path.exists():
            raise InputError(f"{path}: no such file; run the stage merge first.")
    try:
        table = pyarrow.parquet.read_table(frames, columns=SCHEMA.names)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{frames}: not an index of frames ({error}); run merge again.") from error
    index = [Frame(**row) for row in table.to_pylist()]
    end = index[-1].offset + index[-1].size if index else 0
    if end != corpus.stat().st_size:
        raise InputError(
            f"{frames}: ends at byte {end:,}, but {corpus} has {corpus.stat().st_size:,}; "
            "they are not of one run: run merge again."
        )
    return index


def read_frame(corpus: Path, frame: Frame) -> list[bytes]:
    """The lines of one frame, without their ends, in order.

    Raises ``InputError`` if the corpus has other bytes there than the index says.
    """
    with corpus.open("rb") as file:
        file.seek(frame.offset)
        data = file.read(frame.size)
    if _digest(data) != frame.digest:
        raise InputError(
            f"{corpus}: the frame at byte {frame.offset:,} is not the one that the index speaks "
            "of; the file was changed or is of another run: run merge again."
        )
    lines = zstandard.ZstdDecompressor().decompress(data).split(b"\n")
    return lines if lines[-1] else lines[:-1]  # twice as fast as splitlines


def read_documents(corpus: Path, frame: Frame) -> list[Document]:
    """The documents of one frame, in order; errors as for ``read_frame``."""
    return [orjson.loads(line) for line in read_frame(corpus, frame)]


def _write_index(path: Path, frames: Sequence[Frame]) -> None:
    columns = {field.name: [getattr(frame, field.name) for frame in frames] for field in SCHEMA}
    draft = temporary_name(path)
    pyarrow.parquet.write_table(pyarrow.table(columns, schema=SCHEMA), draft)
    publish(draft, path)


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()
