"""Models from elsewhere, as a Hugging Face folder that sampling, evaluation and training can start
from: Megatron-LM's and Megatron-DeepSpeed's checkpoints, Hugging Face's GPT-2 with weights of any
kind and padding.

Invariant: the folder appears only after every tensor was read back equal to its source; the
vocabulary is that of the tokenizer, and rows beyond it (padding) are cut; optimizer states, random
states and schedules are left behind. What this model does not compute is refused.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import torch
from torch import Tensor

from web2gpt.checkpoint.export import split_files, write_settings, write_weights, written_shapes
from web2gpt.checkpoint.huggingface import WEIGHTS, HuggingFaceFolder
from web2gpt.checkpoint.megatron import Shards, in_first_order, read_shards, require_same
from web2gpt.checkpoint.sizes import stated_model
from web2gpt.checkpoint.untrusted import read_untrusted
from web2gpt.config.outputs import ImportCheckpoint
from web2gpt.config.training import Model
from web2gpt.errors import ConfigError, InputError
from web2gpt.io.atomic import atomic_folder
from web2gpt.model.gpt2 import parameter_shapes
from web2gpt.parallel.split import Slice, paste, rule_of, slice_of, without_padding
from web2gpt.tokens.vocabulary import Vocabulary

PICKLED = "pytorch_model.bin"

_FIXED = {  # settings of Megatron that would ask for another model, and what they must be
    "apply_residual_connection_post_layernorm": (False, None),
    "embed_layernorm": (False, None),
    "glu_activation": (None,),
    "swiglu": (False, None),
    "squared_relu": (False, None),
    "apply_layernorm_1p": (False, None),
    "normalization": ("LayerNorm", None),
    "untie_embeddings_and_output_weights": (False, None),
    "group_query_attention": (False, None),
    "position_embedding_type": ("learned_absolute", "absolute", None),
}


@dataclass(frozen=True)
class Imported:
    """A source of weights under our names."""

    folder: Path
    model: Model
    vocab_size: int
    weight: Callable[[str], Tensor]
    said: str  # what it is, for the summary

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return parameter_shapes(self.model, self.vocab_size)

    @property
    def dtype(self) -> torch.dtype:
        """The type that holds all weights as they are."""
        return reduce(torch.promote_types, (self.weight(name).dtype for name in self.shapes))

    @classmethod
    def of_megatron(cls, shards: Shards, vocab_size: int, settings: ImportCheckpoint) -> Self:
        """From a checkpoint's pieces. Raises ``InputError`` if sizes do not fit each other."""
        model = megatron_model(shards, settings)
        version = settings.checkpoint_version
        version = shards.version if version is None else version
        if version is None:
            raise ConfigError(
                f"{shards.folder}: states no checkpoint_version, which decides the order of "
                "query_key_value; give --checkpoint-version (DeepSpeed's pipeline wrote 3)."
            )
        joined = _JoinedShards(shards, model, parameter_shapes(model, vocab_size), version)
        return cls(shards.folder, model, vocab_size, joined,
                   f"{shards.tensor} tensor ranks, version {version:g}")  # fmt: skip

    @classmethod
    def of_huggingface(cls, folder: HuggingFaceFolder, path: Path, vocab_size: int) -> Self:
        """From a Hugging Face folder, whose vocabulary may be padded."""
        rows = folder.stated.vocab_size
        if rows < vocab_size:
            raise InputError(
                f"{path}: {rows:,} ids, fewer than the tokenizer's {vocab_size:,}; give the "
                "tokenizer that the model was trained with."
            )

        def weight(name: str) -> Tensor:
            tensor = folder.tensor(name)
            return tensor[:vocab_size] if name == "wte.weight" else tensor

        return cls(path, folder.stated.model, vocab_size, weight, "a Hugging Face folder")


@dataclass(frozen=True)
class _JoinedShards:
    shards: Shards
    model: Model
    shapes: Mapping[str, tuple[int, ...]]
    version: float

    def __call__(self, name: str) -> Tensor:
        shape = self.shapes[name]
        tensors = self.shards.whole_pieces(name)
        if rule_of(name) == "replicated":
            pieces = [self.shards.pieces[name][rank][0] for rank in range(len(tensors))]
            for piece, tensor in zip(pieces[1:], tensors[1:], strict=True):
                require_same(name, (pieces[0], tensors[0]), (piece, tensor))
        cuts = self._cuts(name, shape, tensors)
        if rule_of(name) == "heads":
            size = self.model.n_embd // self.model.n_head
            tensors = [in_first_order(tensor, self.version, size) for tensor in tensors]
        whole = torch.empty(shape, dtype=tensors[0].dtype)
        for tensor, part in zip(tensors, cuts, strict=True):
            paste(without_padding(tensor, part), part, whole)
        return whole

    def _cuts(self, name: str, shape: tuple[int, ...], tensors: list[Tensor]) -> list[Slice]:
        ranks = len(tensors)
        rows = sum(tensor.shape[0] for tensor in tensors if tensor.dim())
        if rule_of(name) == "vocabulary" and rows < shape[0]:
            raise InputError(
                f"{self.shards.folder}: {rows:,} ids, fewer than the tokenizer's {shape[0]:,}; "
                "give the tokenizer that the model was trained with."
            )
        cuts = [
            slice_of(name, shape, tensor=ranks, rank=rank, padded_vocab=rows)
            for rank in range(ranks)
        ]
        for rank, (part, tensor) in enumerate(zip(cuts, tensors, strict=True)):
            if tuple(tensor.shape) != part.shape or not tensor.is_floating_point():
                raise InputError(
                    f"{self.shards.pieces[name][rank][0].origin}: {name} is {tensor.dtype} "
                    f"{tuple(tensor.shape)}; this model's is real, {part.shape}."
                )
        return cuts


def import_checkpoint(
    source: Path, output: Path, tokenizer: Path, settings: ImportCheckpoint
) -> str:
    """Make the Hugging Face folder ``output`` from ``source``; returns the line to print.

    Raises ``InputError`` if it is no such model, is damaged or calls for more than tensors.
    """
    if output.exists():
        raise InputError(f"{output}: is there already; name a folder that is not.")
    vocab_size = Vocabulary.load(tokenizer).size
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=output.parent, prefix=".tmp-import-") as work:
        if (source / "config.json").is_file():
            with HuggingFaceFolder(_as_safetensors(source, Path(work))) as folder:
                imported = Imported.of_huggingface(folder, source, vocab_size)
                return _write(imported, output, tokenizer, settings)
        shards = read_shards(source, Path(work))
        imported = Imported.of_megatron(shards, vocab_size, settings)
        return _write(imported, output, tokenizer, settings)


def megatron_model(shards: Shards, settings: ImportCheckpoint) -> Model:
    """The model's sizes, from the tensors, and where these do not say, from the run's settings."""
    for name, allowed in _FIXED.items():
        if shards.argument(name) not in allowed:
            raise InputError(
                f"{shards.folder}: {name} = {shards.argument(name)!r} is not computed here; take "
                "another model."
            )
    positions, width = _embedding_shape(shards, "wpe.weight")
    _embedding_shape(shards, "wte.weight")
    heads = settings.n_head or shards.argument("num_attention_heads")
    if not isinstance(heads, int):
        raise ConfigError(f"{shards.folder}: states no number of heads; give --n-head.")
    epsilon = shards.argument("layernorm_epsilon")
    sizes = {
        "n_layer": _count_layers(shards),
        "n_embd": width,
        "n_head": heads,
        "n_positions": positions,
        "activation_function": settings.activation_function or activation_of(shards),
        "layer_norm_epsilon": epsilon if isinstance(epsilon, float) else 1e-5,
    }
    model = stated_model(sizes, shards.folder)
    wanted = parameter_shapes(model, 1)
    if odd := sorted(set(wanted).symmetric_difference(shards.pieces)):
        raise InputError(
            f"{shards.folder}: {odd[0]} is missing ({len(odd)} such tensors); put all files there."
        )
    return model


def activation_of(shards: Shards) -> Any:
    """Which GELU: the fused kernel is the tanh form, and so was that of the first systems, which
    had no switch for it; without either, Megatron's is the erf form."""
    if shards.argument("openai_gelu"):
        return "gelu_new"
    return "gelu" if shards.argument("bias_gelu_fusion") is False else "gelu_new"


def _embedding_shape(shards: Shards, name: str) -> tuple[int, int]:
    """Rows and width of an embedding, in its first piece. Raises ``InputError`` if it has none."""
    ranks = shards.pieces.get(name)
    if ranks is None:
        raise InputError(f"{shards.folder}: {name} is missing; put all files there.")
    piece = next(iter(ranks.values()))[0]
    if len(piece.shape) != 2:
        raise InputError(
            f"{piece.origin}: {name} has shape {piece.shape}, which is no embedding's; "
            "take another model."
        )
    return piece.shape[0], piece.shape[1]


def _count_layers(shards: Shards) -> int:
    """How many blocks there are. Raises ``InputError`` if the run's settings say another number:
    a file is missing then that no name or tensor would be missed by."""
    found = len({name.split(".")[1] for name in shards.pieces if name.startswith("h.")})
    stated = shards.argument("num_layers")
    if isinstance(stated, int) and stated != found:
        raise InputError(
            f"{shards.folder}: {found} layers, but it was trained with num_layers = {stated}; "
            "put all files of the checkpoint together."
        )
    return found


def _as_safetensors(source: Path, work: Path) -> Path:
    """The folder itself, or a copy whose pickled weights were read safely."""
    pickled = source / PICKLED
    if not pickled.is_file() or (source / WEIGHTS).is_file():
        return source
    contents = read_untrusted([pickled], work)[pickled]
    shutil.copyfile(source / "config.json", work / "config.json")
    contents.tensors.rename(work / WEIGHTS)
    return work


def _write(imported: Imported, output: Path, tokenizer: Path, settings: ImportCheckpoint) -> str:
    dtype = imported.dtype if settings.dtype == "keep" else getattr(torch, settings.dtype)
    with atomic_folder(output) as draft:
        parts = split_files(written_shapes(imported), dtype, settings.max_file_bytes)
        write_settings(imported, tokenizer, draft, dtype)
        write_weights(imported, draft, parts, dtype)
        with HuggingFaceFolder(draft) as written:
            for name in imported.shapes:
                if not torch.equal(written.tensor(name), imported.weight(name).to(dtype)):
                    raise InputError(
                        f"{draft}: {name} is not what was written; the disk or the memory is at "
                        "fault. Run it again, on another machine if it happens twice."
                    )
    count = sum(torch.Size(shape).numel() for shape in imported.shapes.values())
    return (
        f"checkpoint import: {imported.said}: {len(imported.shapes)} tensors, {count:,} "
        f"parameters as {str(dtype).removeprefix('torch.')}, read back and compared, in {output}"
    )
