"""One shard's job of a data stage: everything around the stage's own decision on each record.

A stage reads records and says for each ``keep``, ``drop`` or ``error``; this class counts them,
writes documents and rejected/ records in order, and publishes all files of the shard together.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

from web2gpt.io.frames import FrameWriter
from web2gpt.io.progress import ProgressLine
from web2gpt.io.shards import BadLine, Document, JsonlWriter, read_shard
from web2gpt.io.statistics import Statistics
from web2gpt.io.work import WorkFolder, file_states


@dataclass(frozen=True)
class ShardFiles:
    """Where a shard's job reads and writes. ``inputs`` are read in the order given.

    With ``frames``, ``documents`` is a corpus of many zstd frames, and ``frames`` their index.
    """

    inputs: tuple[Path, ...]
    documents: Path
    rejected: Path
    stats: Path
    work: Path
    frames: Path | None = None

    @property
    def outputs(self) -> tuple[Path, ...]:
        files = (self.documents, self.rejected, self.stats)
        return (*files, self.frames) if self.frames else files


class ShardJob:
    """``with ShardJob(...) as job: if job.needed: for document in job.documents(): ...``

    On leaving without an error the documents, the rejected records and the statistics appear at
    their declared places. ``needed`` is False when another copy of this very job has just
    published them.
    """

    def __init__(
        self,
        stage: str,
        unit: str,
        files: ShardFiles,
        job: Mapping[str, Any],
        *,
        rejected_text: bool,
        frame_bytes: int = 4 << 20,
    ):
        self.files = files
        self._frame_bytes = frame_bytes
        self.statistics = Statistics(stage, unit)
        self._rejected_text = rejected_text
        decides = {
            "stage": stage,
            "rejected_text": rejected_text,
            "inputs": file_states(files.inputs),
        }
        self.work = WorkFolder(files.work, {**job, **decides})
        self.needed = True
        self._start = time.monotonic()
        self._progress = ProgressLine(f"{stage} {files.documents.name.split('.')[0]}", unit=unit)

    def __enter__(self) -> Self:
        self.work.__enter__()
        self.needed = not self.work.is_published(self.files.outputs)
        if self.needed:
            # Named by role: documents and rejected records of a shard may share folder and name.
            roles = zip(
                ("documents", "rejected", "stats", "frames"), self.files.outputs, strict=False
            )
            self._drafts = {self.work.path / f"{role}-{path.name}": path for role, path in roles}
            documents, rejected, self._stats_draft, *frames = self._drafts
            self._documents: JsonlWriter | FrameWriter = (
                FrameWriter(documents, frames[0], self._frame_bytes)
                if frames
                else JsonlWriter(documents)
            )
            self._rejected = JsonlWriter(rejected)
            self._progress.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        try:
            if self.needed:
                self._progress.__exit__(kind, *rest)
                self._documents.__exit__(kind, *rest)
                self._rejected.__exit__(kind, *rest)
                if kind is None:
                    self._finish()
        finally:
            self.work.__exit__(kind, *rest)

    def documents(self) -> Iterator[Document]:
        """The documents of all input shards; a bad line is counted, recorded and passed over."""
        for path in self.files.inputs:
            for record in read_shard(path):
                if isinstance(record, BadLine):
                    self.bad_line(record)
                else:
                    yield record
            self.statistics.bytes_in += path.stat().st_size

    def keep(self, *documents: Document) -> None:
        """One record was kept, and written as these documents (usually one)."""
        self._count()
        self.statistics.kept += 1
        for document in documents:
            self._documents.write(document)

    def keep_frame(self, data: bytes, documents: int, text_bytes: int) -> None:
        """All records of a compressed frame were kept, and the frame is copied as it is."""
        for _ in range(documents):
            self._count()
        self.statistics.kept += documents
        cast(FrameWriter, self._documents).write_frame(data, documents, text_bytes)

    def drop(
        self,
        document: Document,
        reason: str,
        figure: float | str | None = None,
        **further: float | str,
    ) -> None:
        """A rule decided against a record; ``figure`` is what it judged by, ``further`` fields of
        the rejected record say more."""
        self._count()
        self.statistics.dropped[reason] += 1
        self._reject(document, reason, figure, **further)

    def error(self, document: Document, reason: str, figure: float | str | None = None) -> None:
        """A record could not be read or processed."""
        self._count()
        self.statistics.errors[reason] += 1
        self._reject(document, reason, figure)

    def bad_line(self, line: BadLine) -> None:
        """A line of a file could not be read as a record at all."""
        self._count()
        self.statistics.errors[line.reason] += 1
        self._rejected.write(
            {"id": None, "url": None, "reason": line.reason, "file": line.file, "line": line.line}
        )

    def _count(self) -> None:
        self.statistics.read += 1
        self._progress.advance()

    def _reject(
        self,
        document: Document,
        reason: str,
        figure: float | str | None,
        **further: float | str,
    ) -> None:
        record = {"id": document.get("id"), "url": document.get("url"), "reason": reason}
        for where in ("file", "line", "offset"):
            if where in document:
                record[where] = document[where]
        record |= {"figure": figure, **further}
        if self._rejected_text and "text" in document:
            record["text"] = document["text"]
        self._rejected.write(record)

    def _finish(self) -> None:
        self.statistics.out = self._documents.count
        documents = next(iter(self._drafts))
        self.statistics.bytes_out = documents.stat().st_size
        self.statistics.time["seconds"] = time.monotonic() - self._start
        self.statistics.write(self._stats_draft)
        self.work.publish(self._drafts)
        print(self.statistics.summary(), flush=True)
