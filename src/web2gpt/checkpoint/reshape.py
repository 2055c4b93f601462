"""Write a checkpoint again under another layout, without training.

Nothing in a checkpoint but file names and slices depends on the layout, so nothing but these
changes: counters, random states and the trainer's logits go over as they are. Invariant: the new
folder appears under its name only after every tensor and moment, joined again, was found equal to
the old one to the bit. Memory: the largest tensor, twice. Data ranks and ZeRO have no part in the
files: any checkpoint can be carried on under any of them as it stands.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from web2gpt.checkpoint.format import (
    KINDS,
    REFERENCE,
    STATE,
    FileEntry,
    Part,
    State,
    TensorEntry,
    rank_file,
)
from web2gpt.checkpoint.joined import JoinedCheckpoint
from web2gpt.checkpoint.streaming import SafetensorsWriter
from web2gpt.config.derive import padded_vocab_size
from web2gpt.config.training import Parallel
from web2gpt.errors import ConfigError, InputError
from web2gpt.io.atomic import atomic_folder
from web2gpt.io.progress import ProgressLine
from web2gpt.parallel.pipeline import stage_bounds
from web2gpt.parallel.split import Slice, cut, slice_of, without_padding

Shape = tuple[int, ...]


def reshape(folder: Path, output: Path, layout: Parallel) -> str:
    """Write the checkpoint ``folder`` to ``output`` as ranks of ``layout`` would have; returns the
    line to print.

    Raises ``InputError`` if the checkpoint is damaged or ``output`` is there already,
    ``ConfigError`` if the model cannot be cut so.
    """
    if output.exists():
        raise InputError(f"{output}: is there already; name a folder that is not.")
    with JoinedCheckpoint(folder) as source:
        source.index.check_files(folder)
        check_cut(source, layout)
        with atomic_folder(output) as draft:
            _write(source, draft, layout)
            _compare(source, draft)
        files = layout.tensor * layout.pipeline
        return (
            f"checkpoint reshape: step {source.index.step:,} of {source.index.identity}, "
            f"{len(source.shapes)} tensors in {files} file{'s' * (files > 1)} (tensor "
            f"{layout.tensor} x pipeline {layout.pipeline}), equal to the bit, in {output}"
        )


def check_cut(source: JoinedCheckpoint, layout: Parallel) -> None:
    """Raise ``ConfigError`` if the model does not divide so."""
    model = source.model
    if model.n_head % layout.tensor:
        raise ConfigError(
            f"--tensor {layout.tensor} does not divide n_head = {model.n_head}; take a divisor of "
            f"{model.n_head}."
        )
    if layout.pipeline > model.n_layer:
        raise ConfigError(
            f"--pipeline {layout.pipeline} is more than n_layer = {model.n_layer}; take "
            f"{model.n_layer} or fewer."
        )


def stage_of(name: str, bounds: list[int]) -> int:
    """The pipeline stage whose file holds the parameter ``name``; ``bounds`` as ``stage_bounds``
    gives them. The last stage's copy of the token embedding is not kept."""
    if not name.startswith("h."):
        return len(bounds) - 2 if name.startswith("ln_f") else 0
    place = int(name.split(".")[1]) + 2  # after the two embeddings
    return next(stage for stage, end in enumerate(bounds[1:]) if place < end)


def _write(source: JoinedCheckpoint, draft: Path, layout: Parallel) -> None:
    padded = padded_vocab_size(source.vocab_size, source.model, layout)
    bounds = stage_bounds(source.model, layout.pipeline, padded)
    stages = {name: stage_of(name, bounds) for name in source.shapes}
    entries: dict[str, TensorEntry] = {}
    with ProgressLine("reshape", unit="tensors", total=len(KINDS) * len(stages)) as progress:
        for stage in range(layout.pipeline):
            names = [name for name, own in stages.items() if own == stage]
            slices = {
                name: [
                    slice_of(name, source.shapes[name], tensor=layout.tensor, rank=rank,
                             padded_vocab=padded)
                    for rank in range(layout.tensor)
                ]
                for name in names
            }  # fmt: skip
            _write_stage(source, draft, stage, slices, progress)
            for name, cuts in slices.items():
                files = [rank_file(rank, stage) for rank in range(layout.tensor)]
                parts = tuple(Part.of(file, part) for file, part in zip(files, cuts, strict=True))
                entries[name] = TensorEntry(source.shapes[name], parts)
    _write_rest(source, draft, layout, {name: entries[name] for name in source.shapes})


def _write_stage(
    source: JoinedCheckpoint,
    draft: Path,
    stage: int,
    slices: dict[str, list[Slice]],
    progress: ProgressLine,
) -> None:
    """The files of one stage's tensor ranks, side by side, so that each tensor is joined once."""
    keys = sorted(f"{kind}/{name}" for kind in KINDS for name in slices)
    ranks = range(len(next(iter(slices.values()))))
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                SafetensorsWriter(
                    draft / rank_file(rank, stage),
                    {key: _stored(slices[_name(key)][rank]) for key in keys},
                    torch.float32,
                    metadata={},
                )
            )
            for rank in ranks
        ]
        for key in keys:
            whole = source.whole(key.split("/")[0], _name(key))
            for writer, part in zip(writers, slices[_name(key)], strict=True):
                writer.write(key, without_padding(cut(whole, part), part))
            progress.advance(note=key)


def _write_rest(
    source: JoinedCheckpoint, draft: Path, layout: Parallel, entries: dict[str, TensorEntry]
) -> None:
    state = State.read(source.folder)
    said = {"tensor": layout.tensor, "pipeline": layout.pipeline}
    replace(state, layout={**state.layout, **said}).write(draft)
    if REFERENCE in source.index.files:
        shutil.copyfile(source.folder / REFERENCE, draft / REFERENCE)
    names = [STATE, *sorted(path.name for path in draft.iterdir() if path.name != STATE)]
    files = {name: FileEntry.of(draft / name) for name in names}
    replace(source.index, tensors=entries, files=files).write(draft)


def _compare(source: JoinedCheckpoint, draft: Path) -> None:
    with JoinedCheckpoint(draft) as written:
        for kind, name in _keys(source):
            if not _equal(source.whole(kind, name), written.whole(kind, name)):
                raise InputError(
                    f"{draft}: {kind}/{name} is not what {source.folder} holds; the disk or the "
                    "memory is at fault. Run it again, on another machine if it happens twice."
                )


def _keys(source: JoinedCheckpoint) -> Iterator[tuple[str, str]]:
    return ((kind, name) for name in source.shapes for kind in KINDS)


def _equal(first: Tensor, second: Tensor) -> bool:
    return torch.equal(first.view(torch.int32), second.view(torch.int32))


def _stored(part: Slice) -> Shape:
    """The slice's shape as files hold it: without padding."""
    if part.dim is None:
        return part.shape
    return (*part.shape[: part.dim], part.length, *part.shape[part.dim + 1 :])


def _name(key: str) -> str:
    return key.split("/", 1)[1]
