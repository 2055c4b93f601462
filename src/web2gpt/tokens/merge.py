"""Join several indexed datasets into one, as megatron-core's tools/merge_datasets.py does.

Invariant: the .bin is the others' back to back, the .idx speaks of their sequences and documents
in the same order; byte for byte what IndexedDatasetBuilder.add_index gives for the same order.
Offsets are int64 throughout. The .idx appears last. Memory: twelve bytes a document.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic

import numpy as np
import pyarrow
import pyarrow.parquet

from web2gpt.errors import ConfigError, InputError
from web2gpt.io.atomic import atomic_write, write_json
from web2gpt.io.made import made_by
from web2gpt.tokens.indexed import CHUNK, IndexedDataset, bin_path, idx_path, prefix_of, write_idx
from web2gpt.tokens.parts import SCHEMA
from web2gpt.tokens.provenance import manifest_path, merged_manifest
from web2gpt.tokens.verify import verify_dataset
from web2gpt.tokens.vocabulary import Vocabulary


def merge_datasets(
    prefixes: Sequence[Path],
    output: Path,
    *,
    tokenizer: Path | None = None,
    documents: Sequence[Path] = (),
    documents_output: Path | None = None,
) -> None:
    """Write the pair ``output``.bin/.idx, and print a line about it.

    Each dataset is verified first, with ``tokenizer`` its ids too. ``documents`` are their
    documents.parquet, one for each dataset or none. Raises ``InputError`` for datasets that are
    damaged or of different types or tokenizers, ``ConfigError`` for paths that do not go together.
    """
    start = monotonic()
    output = prefix_of(output)
    vocabulary = Vocabulary.load(tokenizer) if tokenizer else None
    if output.absolute() in {prefix_of(prefix).absolute() for prefix in prefixes}:
        raise ConfigError(f"--output {output}: is one of the datasets to merge; name another.")
    if bool(documents) != bool(documents_output) or len(documents) not in (0, len(prefixes)):
        raise ConfigError(
            f"--documents stands {len(documents)} times for {len(prefixes)} datasets; give it once "
            "for each, together with --documents-output, or leave both out."
        )
    datasets = [verify_dataset(prefix, vocabulary) for prefix in prefixes]
    _check_types(datasets)
    made_with = merged_manifest([data.prefix for data in datasets])
    idx_path(output).unlink(missing_ok=True)  # never an old .idx beside a new .bin
    with atomic_write(bin_path(output)) as target:
        for data in datasets:
            with data.bin.open("rb") as source:
                shutil.copyfileobj(source, target, CHUNK)
    if documents_output:
        _merge_documents(datasets, documents, documents_output)
    manifest_path(output).unlink(missing_ok=True)
    if made_with:
        write_json(manifest_path(output), made_with)
    lengths = np.concatenate([np.asarray(data.lengths) for data in datasets])
    with atomic_write(idx_path(output)) as file:
        write_idx(file, lengths, datasets[0].dtype, _document_index(datasets))
    print(
        f"merge: {len(datasets)} datasets, {len(lengths):,} sequences, "
        f"{sum(len(data.tokens) for data in datasets):,} tokens as {datasets[0].dtype.name}, "
        f"{monotonic() - start:.1f} s",
        flush=True,
    )


def _check_types(datasets: Sequence[IndexedDataset]) -> None:
    first = datasets[0]
    for data in datasets:
        if data.dtype != first.dtype:
            raise InputError(
                f"{data.idx}: {data.dtype.name}, but {first.idx} is {first.dtype.name}; ids of "
                "one tokenizer have one type: tokenize one of the texts again."
            )
        if data.has_modes:
            raise InputError(
                f"{data.idx}: has sequence modes (a multimodal dataset), which are not merged here."
            )


def _document_index(
    datasets: Sequence[IndexedDataset],
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """First sequence of each document over all datasets, and the number of sequences at the end."""
    parts, first = [np.zeros(1, np.int64)], 0
    for data in datasets:
        parts.append(data.document_index[1:] + np.int64(first))
        first += len(data)
    return np.concatenate(parts)


def _merge_documents(
    datasets: Sequence[IndexedDataset], paths: Sequence[Path], output: Path
) -> None:
    with (
        atomic_write(output) as target,
        pyarrow.parquet.ParquetWriter(target, SCHEMA, compression="zstd") as writer,
    ):
        for data, path in zip(datasets, paths, strict=True):
            with made_by("tokenize", path):
                opened = pyarrow.parquet.ParquetFile(path)
            with opened as file:
                if file.metadata.num_rows != len(data):
                    raise InputError(
                        f"{path}: {file.metadata.num_rows:,} rows, but {data.idx} has "
                        f"{len(data):,} documents; they are not of one run."
                    )
                for table in _tables(file):
                    writer.write_table(table)


def _tables(file: pyarrow.parquet.ParquetFile) -> Iterator[pyarrow.Table]:
    """The row groups, with nulls in columns that an older file lacks."""
    for number in range(file.num_row_groups):
        table = file.read_row_group(number)
        columns = [
            table[field.name]
            if field.name in table.column_names
            else pyarrow.nulls(table.num_rows, field.type)
            for field in SCHEMA
        ]
        yield pyarrow.table(columns, schema=SCHEMA)
