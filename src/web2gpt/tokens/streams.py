"""The datasets and sources that samples are drawn from.

Documents have one numbering over all datasets of a run: document d of dataset k has the number
``first_document`` of k plus d; with one dataset, numbers are those of its .idx. A stream is what
is split and weighted as a whole: a dataset, or one source of a dataset.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet

from web2gpt.errors import ConfigError, InputError
from web2gpt.io.checksums import checksum
from web2gpt.io.made import made_by
from web2gpt.tokens.indexed import IndexedDataset
from web2gpt.tokens.vocabulary import Vocabulary

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Stream:
    """Documents [n] of one source, by their numbers, in order; ``weight`` is None where none is.

    ``validation``: it is a named validation set, and never trained on.
    """

    name: str
    documents: Array
    weight: float | None
    validation: bool = False


@dataclass(frozen=True)
class NamedDataset:
    """A dataset under its name; ``sources`` is its documents.parquet, if it has one."""

    name: str
    data: IndexedDataset
    first_document: int
    sources: Path | None

    @property
    def numbers(self) -> Array:
        """The numbers of its documents [documents]."""
        return self.first_document + np.arange(len(self.data))


def open_datasets(
    prefixes: Sequence[tuple[str, Path]], documents: Mapping[str, Path]
) -> list[NamedDataset]:
    """The datasets in the order given, numbered through; several may have one name."""
    datasets, first = [], 0
    for name, prefix in prefixes:
        data = IndexedDataset(prefix)
        datasets.append(NamedDataset(name, data, first, documents.get(name)))
        first += len(data)
    return datasets


def make_streams(
    datasets: Sequence[NamedDataset],
    weights: Mapping[str, float],
    validation: Collection[str] = (),
    *,
    whole: bool,
) -> list[Stream]:
    """One stream for each source; with ``whole``, sources of one dataset that have the same weight
    stay together. Those named in ``validation`` come last.

    A weight is that of a source or of a whole dataset. Raises ``ConfigError`` where some streams
    have a weight and others none, or a validation set has no documents.
    """
    found: dict[str, list[Array]] = {}
    given: dict[str, float | None] = {}
    named: dict[str, list[Array]] = {name: [] for name in validation}
    for dataset in datasets:
        sources = _by_source(dataset)
        for name in [name for name in sources if name in named]:
            named[name].append(sources.pop(name))
        own = {name: weights.get(name, weights.get(dataset.name)) for name in sources}
        if whole and len(set(own.values())) == 1:
            together = np.sort(np.concatenate([*sources.values()]))
            sources, own = {dataset.name: together}, {dataset.name: own.popitem()[1]}
        for name, documents in sources.items():
            found.setdefault(name, []).append(documents)
        given |= own
    _check(given, named)
    trained = [Stream(name, np.concatenate(parts), given[name]) for name, parts in found.items()]
    return trained + [
        Stream(name, np.concatenate(parts), None, validation=True) for name, parts in named.items()
    ]


def _check(given: Mapping[str, float | None], named: Mapping[str, Sequence[Array]]) -> None:
    for name in [name for name, parts in named.items() if not parts]:
        raise ConfigError(
            f"index.validation: {name!r} has no documents; sources that have: "
            f"{', '.join([*given, *(other for other in named if named[other])])}."
        )
    missing = [name for name, weight in given.items() if weight is None]
    if 0 < len(missing) < len(given):
        raise ConfigError(
            f"weight: {missing[0]!r} has none, others have; give one to each source, or to none "
            "(then all documents are seen equally often)."
        )


def all_lengths(datasets: Sequence[NamedDataset]) -> Array:
    """Lengths in tokens [documents] by document number."""
    if len(datasets) == 1:
        return datasets[0].data.lengths
    return np.concatenate([dataset.data.lengths for dataset in datasets])


def held_out_documents(datasets: Sequence[NamedDataset]) -> Array:
    """Which documents are held out [documents], by document number."""
    return np.concatenate([np.zeros(0, bool), *(_held_out(dataset) for dataset in datasets)])


def scan_dataset(dataset: NamedDataset, vocabulary: Vocabulary) -> dict[str, Any]:
    """Read .bin and .idx once: their sizes and hashes, as the manifest has them.

    Raises ``InputError`` if an id is not of the vocabulary.
    """
    data, least, largest = dataset.data, 0, -1
    tokens_hash = blake2b(digest_size=32)
    for chunk in data.chunks():
        tokens_hash.update(chunk.data)
        least, largest = min(least, int(chunk.min())), max(largest, int(chunk.max()))
    if least < 0 or largest >= vocabulary.size:
        raise InputError(
            f"{data.bin}: holds the id {least if least < 0 else largest}, but the tokenizer has "
            f"{vocabulary.size} tokens; "
            "it was made with another tokenizer: name that one with tokenizer.path."
        )
    return {
        "name": dataset.name,
        "prefix": str(data.prefix),
        "first_document": dataset.first_document,
        "documents": len(data),
        "tokens": len(data.tokens),
        "bin": {"bytes": data.bin.stat().st_size, "blake2b": tokens_hash.hexdigest()},
        "idx": {"bytes": data.idx.stat().st_size, "blake2b": checksum(data.idx)},
    }


def _by_source(dataset: NamedDataset) -> dict[str, Array]:
    """The dataset's documents by source, in the order in which sources first appear; those without
    one stand under the dataset's name."""
    numbers = dataset.numbers
    if dataset.sources is None:
        return {dataset.name: numbers}
    column = _column(dataset, dataset.sources, "source", pyarrow.string())
    encoded = column.fill_null(dataset.name).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    names = encoded.dictionary.to_pylist()
    if len(names) <= 1:
        return {names[0] if names else dataset.name: numbers}
    return {name: numbers[codes == code] for code, name in enumerate(names)}


def _held_out(dataset: NamedDataset) -> Array:
    """[documents of the dataset]; none where documents.parquet has no such column."""
    path = dataset.sources
    if path is None:
        return np.zeros(len(dataset.data), bool)
    with made_by("tokenize", path):
        names = pyarrow.parquet.read_schema(path).names
    if "held_out" not in names:
        return np.zeros(len(dataset.data), bool)
    column = _column(dataset, path, "held_out", pyarrow.bool_())
    flags: Array = column.fill_null(False).to_numpy(zero_copy_only=False)
    return flags


def _column(dataset: NamedDataset, path: Path, name: str, kind: pyarrow.DataType) -> Any:
    """A column of documents.parquet. Raises ``InputError`` if it is of another dataset."""
    with made_by("tokenize", path):
        column = pyarrow.parquet.read_table(path, columns=[name])[name].cast(kind)
    if len(column) != len(dataset.data):
        raise InputError(
            f"{path}: {len(column):,} rows, but {dataset.data.idx} has {len(dataset.data):,} "
            "documents; they are not of one run: run tokenize again."
        )
    return column.combine_chunks()
