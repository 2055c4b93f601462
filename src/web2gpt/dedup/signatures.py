"""Step 1, a job a shard: from documents to MinHash signatures.

The file, parquet, has one row for each sound document, in the shard's order:

    id          16 bytes     the document's id
    url         string       null if it has none
    characters  int64        length of the text
    date        int64        seconds since 1970, null if unknown
    priority    float64      null if there is none
    damaged     bool         ftfy would change the text
    digest      16 bytes     blake2b-128 of the normalised text: equal for exact duplicates
    shingles    int64        number of shingles, repeated ones counted
    signature   4 x permutations bytes   uint32, little-endian

Its metadata say how signatures were made; files made in different ways are never compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow
import pyarrow.parquet

from web2gpt.config.dedup import Dedup
from web2gpt.config.versions import VERSIONS
from web2gpt.dedup.merits import Merits
from web2gpt.dedup.minhash import SCHEME, SEED, Permutations
from web2gpt.dedup.shingles import HASH, Shingler
from web2gpt.dedup.sound import sound_documents
from web2gpt.dedup.text import normalise
from web2gpt.io.progress import ProgressLine
from web2gpt.io.shards import Document
from web2gpt.io.work import WorkFolder, file_states

ROWS = 1 << 13  # in a row group: 4 MiB of signatures of 128 values
BATCH = 1 << 19  # characters of text at once


def method_of(settings: Dedup) -> dict[str, Any]:
    """All that decides a signature's values."""
    return {
        "hash": HASH,
        "scheme": SCHEME,
        "seed": SEED,
        "permutations": settings.permutations,
        "shingle": settings.shingle,
        "ngram": settings.ngram,
    }


def schema_of(settings: Dedup) -> pyarrow.Schema:
    """The columns of the file, with the method in their metadata."""
    columns = [
        ("id", pyarrow.binary(16)),
        ("url", pyarrow.string()),
        ("characters", pyarrow.int64()),
        ("date", pyarrow.int64()),
        ("priority", pyarrow.float64()),
        ("damaged", pyarrow.bool_()),
        ("digest", pyarrow.binary(16)),
        ("shingles", pyarrow.int64()),
        ("signature", pyarrow.binary(4 * settings.permutations)),
    ]
    return pyarrow.schema(columns, metadata={"minhash": orjson.dumps(method_of(settings))})


@dataclass
class _Batch:
    """Documents on their way, column by column."""

    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {
            name: []
            for name in ("id", "url", "characters", "date", "priority", "damaged", "digest")
        }
    )
    texts: list[str] = field(default_factory=list)  # normalised
    size: int = 0

    def add(self, document: Document, settings: Dedup) -> None:
        text = normalise(document["text"])
        merits = Merits.of(document, settings.date_field, settings.priority_field)
        url = document.get("url")
        values = {
            "id": bytes.fromhex(document["id"]),
            "url": url if isinstance(url, str) else None,
            "digest": blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest(),
            **vars(merits),
        }
        for name, column in self.columns.items():
            column.append(values[name])
        self.texts.append(text)
        self.size += len(text)


def compute_signatures(documents: Path, output: Path, work: Path, settings: Dedup) -> None:
    """Write the signatures of one shard's documents to ``output``; memory: one row group."""
    job = {
        "step": "signatures",
        "version": VERSIONS["dedup"],
        "method": method_of(settings),
        "fields": [settings.date_field, settings.priority_field],
        "inputs": file_states([documents]),
    }
    with WorkFolder(work, job) as folder:
        if folder.is_published([output]):
            return
        draft = folder.path / "signatures.parquet"
        count = _write(documents, draft, settings)
        folder.publish({draft: output})
    print(f"dedup: signatures of {count:,} documents in {output.name}", flush=True)


def _write(documents: Path, draft: Path, settings: Dedup) -> int:
    schema, count = schema_of(settings), 0
    compression = {name: "none" if name == "signature" else "zstd" for name in schema.names}
    with (
        pyarrow.parquet.ParquetWriter(draft, schema, compression=compression) as writer,
        ProgressLine(f"dedup signatures {documents.name}", unit="documents") as progress,
    ):
        rows: list[pyarrow.RecordBatch] = []
        for batch in _batches(documents, settings):
            rows.append(batch)
            progress.advance(len(batch))
            count += len(batch)
            if sum(map(len, rows)) >= ROWS:
                writer.write_table(
                    pyarrow.Table.from_batches(rows, schema), row_group_size=2 * ROWS
                )
                rows = []
        if rows:
            writer.write_table(pyarrow.Table.from_batches(rows, schema), row_group_size=2 * ROWS)
    return count


def _batches(documents: Path, settings: Dedup) -> Iterator[pyarrow.RecordBatch]:
    shingler = Shingler(settings.shingle, settings.ngram)
    permutations = Permutations.of(settings.permutations)
    schema, batch = schema_of(settings), _Batch()
    for document in sound_documents(documents):
        batch.add(document, settings)
        if batch.size >= BATCH or len(batch.texts) >= ROWS:
            yield _finish(batch, shingler, permutations, schema)
            batch = _Batch()
    if batch.texts:
        yield _finish(batch, shingler, permutations, schema)


def _finish(
    batch: _Batch, shingler: Shingler, permutations: Permutations, schema: pyarrow.Schema
) -> pyarrow.RecordBatch:
    """The rows of a batch, its signatures computed together."""
    hashes, counts = shingler.hash_all(batch.texts)
    upper = (hashes >> np.uint64(32)).astype(np.uint32)
    signatures = permutations.signatures(upper, counts).astype("<u4", copy=False)
    width = schema.field("signature").type
    column = pyarrow.Array.from_buffers(
        width, len(counts), [None, pyarrow.py_buffer(np.ascontiguousarray(signatures))]
    )
    arrays = [pyarrow.array(batch.columns[name], schema.field(name).type) for name in batch.columns]
    arrays += [pyarrow.array(counts), column]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)
