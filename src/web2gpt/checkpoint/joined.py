"""Whole tensors from a checkpoint's slices, one at a time.

Invariant: a tensor comes out only if its slices cover it exactly, and if whatever several files
hold of it (replicated tensors, tied copies) is the same to the bit; every key of every file is
accounted for. Nothing is averaged and nothing is cut. Memory: the largest tensor, and never more
than the files hold: shapes and slices are compared with the files' own before any is read.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from web2gpt.checkpoint.format import INDEX, KINDS, Index, Part, TensorEntry
from web2gpt.checkpoint.sizes import stated_model, stated_shapes
from web2gpt.config.training import Model
from web2gpt.errors import InputError
from web2gpt.model.gpt2 import GPT2, model_of_weights

STORED = "F32"  # safetensors' name of the type that all tensors are kept in


class JoinedCheckpoint:
    """``with JoinedCheckpoint(folder) as checkpoint: checkpoint.whole("weight", name)``.

    Raises ``InputError`` on entering if index, files and model sizes do not fit each other.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.index = Index.read(folder)
        self.model, self.vocab_size = model_of(self.index, folder)
        self._files: dict[str, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for name in rank_files(self.index):
                self._files[name] = stack.enter_context(self._open(name))
            self._account()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *rest: object) -> None:
        self._stack.close()

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Global name and shape of each parameter, in the order of the model."""
        count = len(self.index.tensors)
        return stated_shapes(self.model, self.vocab_size, count, self.folder)

    def slices(self, kind: str, name: str) -> Iterator[tuple[Part, Tensor]]:
        """Each file's slice of a tensor, as it is stored."""
        for part in self.index.tensors[name].parts:
            yield part, self._files[part.file].get_tensor(f"{kind}/{name}")

    def whole(self, kind: str, name: str) -> Tensor:
        """The joined tensor of ``kind`` (weight, exp_avg, exp_avg_sq) for the parameter ``name``.

        Raises ``InputError`` if slices leave a gap, or if files differ in what they both hold.
        """
        return join(name, self.index.tensors[name], self.slices(kind, name), self.folder)

    def weight(self, name: str) -> Tensor:
        """The joined weight of the parameter ``name``."""
        return self.whole("weight", name)

    def as_model(self, device: torch.device | str = "cpu") -> GPT2:
        """The model with these weights, in evaluation mode."""
        return model_of_weights(self.model, self.vocab_size, self.weight, device)

    def _open(self, name: str) -> Any:
        path = self.folder / name
        try:
            return safe_open(path, framework="pt")
        except (OSError, SafetensorError) as error:
            raise InputError(f"{path}: cannot be read ({error}); take another one.") from error

    def _account(self) -> None:
        """Compare the keys that files hold with those that the index and the model call for."""
        shapes = self.shapes
        entries = {name: entry.shape for name, entry in self.index.tensors.items()}
        if entries != shapes:
            odd = next(iter(_difference(entries, shapes)))
            raise InputError(
                f"{self.folder}: {odd} has shape {entries.get(odd)} in index.json and "
                f"{shapes.get(odd)} by the model's sizes; take another one."
            )
        for file, handle in self._files.items():
            wanted = {
                f"{kind}/{name}"
                for name, entry in self.index.tensors.items()
                for kind in KINDS
                if any(part.file == file for part in entry.parts)
            }
            if odd_keys := sorted(wanted.symmetric_difference(handle.keys())):
                where = "missing from" if odd_keys[0] in wanted else "not in index.json but in"
                raise InputError(
                    f"{self.folder / file}: {odd_keys[0]} is {where} the file "
                    f"({len(odd_keys)} such keys); take another one."
                )
        for name, entry in self.index.tensors.items():
            self._check_slices(name, entry)

    def _check_slices(self, name: str, entry: TensorEntry) -> None:
        """Compare what the index says of a tensor's slices with the headers of the files."""
        _require_cover(name, entry, self.folder)
        for part in entry.parts:
            said = part.as_slice(entry.shape).shape
            for kind in KINDS:
                stored = self._files[part.file].get_slice(f"{kind}/{name}")
                shape = tuple(stored.get_shape())
                if shape != said or stored.get_dtype() != STORED:
                    raise InputError(
                        f"{self.folder / part.file}: {kind}/{name} is {stored.get_dtype()} "
                        f"{shape}, but index.json says {STORED} {said}; take another checkpoint."
                    )


def rank_files(index: Index) -> list[str]:
    """The files that hold slices, in order."""
    return sorted({part.file for entry in index.tensors.values() for part in entry.parts})


def model_of(index: Index, where: Path) -> tuple[Model, int]:
    """The model's settings, and the true size of its vocabulary, that an index states."""
    known = {key: value for key, value in index.model.items() if key in Model.model_fields}
    return stated_model(known, where / INDEX), index.model["vocab_size"]


def join(
    name: str, entry: TensorEntry, slices: Iterator[tuple[Part, Tensor]], where: Path
) -> Tensor:
    """Put slices together. What a second file holds of the same rows must equal the first's."""
    whole = torch.empty(entry.shape)
    covered: dict[tuple[int, int], str] = {}  # (start, length) along the cut: file it came from
    for part, local in slices:
        dim, spans = _spans(part, entry.shape)
        for local_start, start, length in spans:
            source = local.narrow(dim, local_start, length)
            target = whole.narrow(dim, start, length)
            if (start, length) not in covered:
                target.copy_(source)
                covered[start, length] = part.file
            else:
                _require_equal(name, target, source, (covered[start, length], part.file), where)
    return whole


def _spans(part: Part, shape: tuple[int, ...]) -> tuple[int, list[tuple[int, int, int]]]:
    """The cut's dimension and (local start, global start, length); a whole tensor is one span."""
    if part.dim is None:
        return 0, [(0, 0, shape[0])]
    return part.dim, [(r.local_start, r.global_start, r.length) for r in part.ranges]


def _require_equal(
    name: str, first: Tensor, second: Tensor, files: tuple[str, str], where: Path
) -> None:
    differs = first.view(torch.int32) != second.view(torch.int32)
    if count := int(differs.sum()):
        by = (first - second).abs().max().item()
        raise InputError(
            f"{where}: {name} is not the same in {files[0]} and {files[1]}: {count:,} of "
            f"{first.numel():,} values differ, by up to {by:.3g}. These ranks drifted apart in "
            "training; take an earlier checkpoint, before they did."
        )


def _require_cover(name: str, entry: TensorEntry, where: Path) -> None:
    """Raise ``InputError`` unless the slices cover the tensor along its cut, without overlap."""
    spans = (span for part in entry.parts for span in _spans(part, entry.shape)[1])
    covered = {(start, length) for _, start, length in spans}
    end = 0
    for start, length in sorted(covered):
        if length and start != end:
            raise InputError(
                f"{where}: slices of {name} overlap or leave a gap at {end:,}; take another "
                "checkpoint."
            )
        end += length
    dim = next((part.dim for part in entry.parts if part.dim is not None), 0)
    if end != entry.shape[dim]:
        raise InputError(
            f"{where}: slices of {name} cover {end:,} of {entry.shape[dim]:,}; take another "
            "checkpoint."
        )


def _difference(
    left: Mapping[str, tuple[int, ...]], right: Mapping[str, tuple[int, ...]]
) -> list[str]:
    return [name for name in {**left, **right} if left.get(name) != right.get(name)]
