"""Read samples through the index: what trainer and evaluation see.

Invariant: sample i is a function of i alone, so resuming is arithmetic, and the same step sees the
same samples under every layout. Numbers beyond the last sample go on with the first one: nothing
ever runs out. Memory holds what is touched (mmap).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from web2gpt.errors import InputError
from web2gpt.io.atomic import read_json
from web2gpt.io.checksums import checksum
from web2gpt.io.made import made_by
from web2gpt.tokens.indexed import IndexedDataset, bin_path, idx_path

Array = npt.NDArray[Any]
Check = Literal["quick", "full", "none"]


@dataclass(frozen=True)
class Piece:
    """A run of tokens of one document within a sample."""

    document: int  # its number over all datasets
    offset: int  # its first token, within the document
    length: int  # tokens


class Samples:
    """The samples of one split: "train", "valid", "test", or "valid-" and a validation set's name.

    ``check``: quick compares sizes, and hashes of files that are newer than the manifest; full
    compares all hashes. Raises ``InputError`` if index and data do not belong together. Relative
    paths in the manifest are relative to the working folder.
    """

    def __init__(self, manifest: Path, split: str, *, check: Check = "quick"):
        with made_by("index", manifest):
            content = read_json(manifest)
            parts = list(content["splits"])
        if split not in parts:
            raise InputError(f"{manifest}: no part {split!r}; take one of {', '.join(parts)}.")
        if check != "none":
            check_index(manifest, content, split, full=check == "full")
        self.manifest = content
        self.sequence_length: int = content["settings"]["sequence_length"]
        self.targets: int = content["splits"][split]["targets"]
        load = {name.split(".")[-2]: name for name in content["splits"][split]["files"]}
        arrays = {name: np.load(manifest.with_name(file), mmap_mode="r")
                  for name, file in load.items()}  # fmt: skip
        self.document_index: Array = arrays["document"]
        self.sample_index: Array = arrays["sample"]
        self.shuffle_index: Array = arrays["shuffle"]
        self._datasets = [IndexedDataset(Path(data["prefix"])) for data in content["datasets"]]
        self._first = np.array([data["first_document"] for data in content["datasets"]])

    def __len__(self) -> int:
        """Samples that the index holds."""
        return len(self.shuffle_index)

    def sample(self, number: int) -> Array:
        """Tokens [sequence_length + 1], int64, of a sample."""
        return np.concatenate([self._tokens(piece) for piece in self.pieces(number)])

    def batch(self, first: int, count: int) -> Array:
        """Tokens [count, sequence_length + 1], int64, of samples ``first`` and following."""
        tokens = np.empty((count, self.sequence_length + 1), np.int64)
        for row in range(count):
            at = 0
            for piece in self.pieces(first + row):
                tokens[row, at : at + piece.length] = self._tokens(piece)
                at += piece.length
        return tokens

    def pieces(self, number: int) -> Iterator[Piece]:
        """The documents that a sample is made of, in order.

        Raises ``InputError`` if the split has no samples.
        """
        if not len(self):
            raise InputError(
                "this part of the data is empty; give it a larger share (index.split)."
            )
        row = int(self.shuffle_index[number % len(self)])
        position, offset = (int(value) for value in self.sample_index[row])
        missing = self.sequence_length + 1
        while missing:
            document = int(self.document_index[position])
            length = min(missing, self._length(document) - offset)
            if length:
                yield Piece(document, offset, length)
            missing -= length
            position, offset = position + 1, 0

    def locate(self, document: int) -> tuple[int, int]:
        """A document's dataset (its place in the manifest) and its number there."""
        dataset = int(np.searchsorted(self._first, document, side="right")) - 1
        return dataset, document - int(self._first[dataset])

    def _length(self, document: int) -> int:
        dataset, number = self.locate(document)
        return int(self._datasets[dataset].lengths[number])

    def _tokens(self, piece: Piece) -> Array:
        dataset, number = self.locate(piece.document)
        tokens = self._datasets[dataset].get(number, piece.offset, piece.length)
        return tokens.astype(np.int64)


def check_index(manifest: Path, content: dict[str, Any], split: str, *, full: bool) -> None:
    """Compare the files that an index speaks of with what it says of them.

    Raises ``InputError`` for the first that is missing or another.
    """
    made = manifest.stat().st_mtime_ns
    files = [(manifest.with_name(name), facts)
             for name, facts in content["splits"][split]["files"].items()]  # fmt: skip
    for data in content["datasets"]:
        prefix = Path(data["prefix"])
        files += [(bin_path(prefix), data["bin"]), (idx_path(prefix), data["idx"])]
    for path, facts in files:
        if not path.is_file():
            raise InputError(f"{path}: no such file, but {manifest} is made of it; put it back.")
        state = path.stat()
        same = state.st_size == facts["bytes"]
        if same and (full or state.st_mtime_ns > made):
            same = checksum(path) == facts["blake2b"]
        if not same:
            raise InputError(
                f"{path}: not the file that {manifest} was made with; run the stage index again."
            )
