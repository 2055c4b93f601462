"""Checkpoints of a known model, made slice by slice as ranks of any layout write them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from web2gpt.checkpoint.format import KINDS, FileEntry, Index, Part, State, TensorEntry, rank_file
from web2gpt.config.training import Model
from web2gpt.model.gpt2 import GPT2
from web2gpt.parallel.split import cut, slice_of, without_padding

SIZES = {"n_layer": 2, "n_embd": 32, "n_head": 4, "n_positions": 16, "vocab_multiple": 8}
MODEL = Model(**SIZES, initializer_range=0.2)
VOCAB = 263  # odd, so that every tensor rank has padding


def stage_of(name: str, pipeline: int) -> list[int]:
    """The pipeline ranks that hold a parameter; a tied embedding stands in the first alone."""
    if name.startswith("h."):
        return [int(name.split(".")[1]) * pipeline // MODEL.n_layer]
    return [pipeline - 1] if name.startswith("ln_f") else [0]


def write_checkpoint(
    folder: Path, gpt2: GPT2, tensor: int, pipeline: int, tied_twice: bool = False
) -> Path:
    """A checkpoint of ``gpt2`` as ranks of the layout write it."""
    folder.mkdir(parents=True)
    contents: dict[str, dict[str, torch.Tensor]] = {}
    entries: dict[str, TensorEntry] = {}
    padded = -(-VOCAB // (8 * tensor)) * 8 * tensor
    for name, parameter in gpt2.tensors().items():
        shape = tuple(parameter.shape)
        parts = []
        stages = stage_of(name, pipeline)
        if tied_twice and name == "wte.weight":
            stages = sorted({0, pipeline - 1})
        for stage in stages:
            for rank in range(tensor):
                piece = slice_of(name, shape, tensor=tensor, rank=rank, padded_vocab=padded)
                file = rank_file(rank, stage)
                parts.append(Part.of(file, piece))
                for number, kind in enumerate(KINDS):
                    whole = parameter.detach() if kind == "weight" else parameter.detach().abs()
                    local = without_padding(cut(whole * (1 if number < 2 else 2), piece), piece)
                    contents.setdefault(file, {})[f"{kind}/{name}"] = local.contiguous()
        entries[name] = TensorEntry(shape, tuple(parts))
    for file, tensors in contents.items():
        save_file(tensors, folder / file)
    tokens = torch.arange(12)[None] * 17 % VOCAB
    with torch.no_grad():
        logits = gpt2(tokens)
    save_file({"tokens": tokens, "logits": logits}, folder / "reference.safetensors")
    layout = {"tensor": tensor, "pipeline": pipeline, "data": 1}
    State(7, 7, 112, 1792, layout=layout).write(folder)
    sizes = MODEL.model_dump(mode="json") | {"vocab_size": VOCAB}
    index = Index("abc123", 7, sizes, entries, {})
    reindex(folder, index)
    return folder


def reindex(folder: Path, index: Index) -> None:
    """Write index.json with the checksums that the files have now."""
    names = sorted(path.name for path in folder.iterdir() if path.name != "index.json")
    replace(index, files={name: FileEntry.of(folder / name) for name in names}).write(folder)


def change(folder: Path, file: str, edit: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    """Edit the tensors of a file, and give it a right checksum again."""
    tensors = load_file(folder / file)
    edit(tensors)
    save_file(tensors, folder / file)
    reindex(folder, Index.read(folder))
