"""The documents of one part of the index, each once."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from web2gpt.errors import InputError
from web2gpt.io.atomic import read_json
from web2gpt.io.made import made_by
from web2gpt.tokens.samples import check_index
from web2gpt.tokens.streams import NamedDataset, open_datasets

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SplitDocuments:
    """Documents of a part, by number, in the order of the datasets that hold them."""

    datasets: list[NamedDataset]
    numbers: Array

    @classmethod
    def open(cls, manifest: Path, split: str) -> Self | None:
        """From index/manifest.json; None if the part is empty. Raises ``InputError`` if files are
        missing or others than the index was made of."""
        with made_by("index", manifest):
            content = read_json(manifest)
            named = [(d["name"], Path(d["prefix"])) for d in content["datasets"]]
            parts = list(content["splits"])
        if split not in parts:
            raise InputError(f"{manifest}: no part {split!r}; take one of {', '.join(parts)}.")
        check_index(manifest, content, split, full=False)
        datasets = open_datasets(named, {})
        numbers = np.unique(np.load(manifest.with_name(f"{split}.document.npy")))
        return cls(datasets, numbers) if len(numbers) else None

    @property
    def tokens(self) -> int:
        """How many there are in all."""
        return sum(int(d.data.lengths[mine].sum(dtype=np.int64)) for d, mine in self._by_dataset())

    def __iter__(self) -> Iterator[Array]:
        for dataset, mine in self._by_dataset():
            for number in mine:
                yield dataset.data.get(int(number))

    def _by_dataset(self) -> Iterator[tuple[NamedDataset, Array]]:
        for dataset in self.datasets:
            local = self.numbers - dataset.first_document
            yield dataset, local[(local >= 0) & (local < len(dataset.data))]
