"""Write a Hugging Face GPT-2 folder from any source of whole weights, one tensor at a time.

Invariant: memory holds the largest tensor; the vocabulary is the true one; what could not be said
in the chosen type (NaN, infinity) is refused, never written.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from web2gpt.checkpoint import huggingface
from web2gpt.checkpoint.huggingface import key_of, turned, turned_shape
from web2gpt.checkpoint.streaming import SafetensorsWriter, tensor_bytes
from web2gpt.config.training import Model
from web2gpt.errors import InputError
from web2gpt.io.atomic import write_bytes, write_json
from web2gpt.io.progress import ProgressLine
from web2gpt.tokens.vocabulary import Vocabulary

SETTINGS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


class WeightSource(Protocol):
    """A checkpoint of whatever kind: its sizes, and whole weights under our names."""

    @property
    def folder(self) -> Path: ...

    @property
    def model(self) -> Model: ...

    @property
    def vocab_size(self) -> int: ...

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]: ...

    def weight(self, name: str) -> Tensor: ...


def written_shapes(source: WeightSource) -> dict[str, tuple[int, ...]]:
    """Our names, and the shapes that the tensors have in Hugging Face's files."""
    return {name: turned_shape(name, shape) for name, shape in source.shapes.items()}


def split_files(
    shapes: Mapping[str, tuple[int, ...]], dtype: torch.dtype, max_file_bytes: int
) -> dict[str, list[str]]:
    """Which tensors stand in which file: one file, or several of at most ``max_file_bytes``."""
    groups: list[list[str]] = [[]]
    size = 0
    for name, shape in shapes.items():
        bytes_ = tensor_bytes(shape, dtype)
        if groups[-1] and size + bytes_ > max_file_bytes:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += bytes_
    if len(groups) == 1:
        return {huggingface.WEIGHTS: groups[0]}
    count = len(groups)
    return {f"model-{n:05d}-of-{count:05d}.safetensors": g for n, g in enumerate(groups, start=1)}


def file_names(parts: Mapping[str, list[str]]) -> list[str]:
    """All files of the folder, given those of the weights."""
    return [*parts, *SETTINGS, *([huggingface.WEIGHTS_INDEX] if len(parts) > 1 else [])]


def write_settings(source: WeightSource, tokenizer: Path, draft: Path, dtype: torch.dtype) -> None:
    """config.json, generation_config.json, tokenizer.json and tokenizer_config.json."""
    known = Vocabulary.load(tokenizer)
    if known.size != source.vocab_size:
        raise InputError(
            f"{tokenizer}: {known.size:,} ids, but {source.folder} was trained with "
            f"{source.vocab_size:,}; give the tokenizer that its tokens were made with."
        )
    model = source.model
    name = str(dtype).removeprefix("torch.")
    stated = huggingface.model_config(model, known.size, known.eod_id, name)
    write_json(draft / "config.json", stated)
    write_json(draft / "generation_config.json", huggingface.generation_config(known.eod_id))
    write_bytes(draft / "tokenizer.json", tokenizer.read_bytes())
    write_json(draft / "tokenizer_config.json", huggingface.tokenizer_config(model, known.eod))


def write_weights(
    source: WeightSource, draft: Path, parts: Mapping[str, list[str]], dtype: torch.dtype
) -> None:
    """The weights, one tensor at a time, and the index of their files if there are several."""
    shapes = written_shapes(source)
    with ProgressLine("write the model", unit="tensors", total=len(shapes)) as progress:
        for file, names in parts.items():
            header = {key_of(name): shapes[name] for name in names}
            with SafetensorsWriter(draft / file, header, dtype) as writer:
                for name in names:
                    weight = converted(name, source.weight(name), dtype)
                    writer.write(key_of(name), turned(name, weight))
                    progress.advance(note=name)
    if len(parts) > 1:
        total = sum(tensor_bytes(shape, dtype) for shape in shapes.values())
        where = {key_of(name): file for file, names in parts.items() for name in names}
        index = {"metadata": {"total_size": total}, "weight_map": where}
        write_json(draft / huggingface.WEIGHTS_INDEX, index)


def converted(name: str, weight: Tensor, dtype: torch.dtype) -> Tensor:
    """The weight in its final type. Raises ``InputError`` if a value is or becomes infinite."""
    result = weight.to(dtype)
    if not torch.isfinite(result).all():
        largest = weight.abs().max().item()
        raise InputError(
            f"{name}: holds NaN or values beyond {dtype} (largest: {largest:.3g}); "
            "take an earlier checkpoint, or the type float32."
        )
    return result


def remove_others(output: Path, names: list[str]) -> None:
    """Weights that an earlier run left under other names would be taken for this model's."""
    for path in sorted(output.glob("model*.safetensors*")):
        if path.name not in names:
            path.unlink()
