"""Checkpoints of Megatron-LM and Megatron-DeepSpeed, as weights under our names.

Two forms: ``mp_rank_TT[_PPP]/model_optim_rng.pt``, a file for each tensor (and pipeline) rank, with
layers numbered within the stage; and ``layer_NN-model_TT-model_states.pt``, a file for each layer
and tensor rank, as DeepSpeed's pipeline engine writes them. Tensors are cut as ours are, except
that each rank's query_key_value stands in the order of the checkpoint's version:

    version 0 (not stated)   [3, heads here, head size]
    version 1                [heads here, head size, 3]
    version 2 and later      [heads here, 3, head size]

so it is put into the first order rank by rank, before ranks are joined; the other way round would
scramble heads. Invariant: every parameter is found, every key is known, and what several ranks hold
of a tensor is the same; else nothing is imported.
Source: the systems' file formats, by their own code and files.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from web2gpt.checkpoint.untrusted import Contents, read_untrusted
from web2gpt.errors import InputError

_RANK = re.compile(r"mp_rank_(\d+)(?:_(\d+))?")
_LAYER = re.compile(r"layer_(\d+)-model_(\d+)-model_states\.pt")
_OUTER = re.compile(r"^(?:(?:model|module|language_model|embedding|transformer|encoder)\.)*")
_BLOCK = {
    "input_layernorm": "ln_1",
    "self_attention.query_key_value": "attn.c_attn",
    "attention.query_key_value": "attn.c_attn",
    "self_attention.dense": "attn.c_proj",
    "attention.dense": "attn.c_proj",
    "post_attention_layernorm": "ln_2",
    "mlp.dense_h_to_4h": "mlp.c_fc",
    "mlp.dense_4h_to_h": "mlp.c_proj",
}
_WHOLE = {
    "word_embeddings.weight": "wte.weight",
    "word_embeddings_for_head.weight": "wte.weight",  # the last stage's tied copy
    "position_embeddings.weight": "wpe.weight",
    "final_layernorm.weight": "ln_f.weight",
    "final_layernorm.bias": "ln_f.bias",
}


@dataclass(frozen=True)
class Piece:
    """What one file holds of a tensor: the file it came from, and where it now stands."""

    origin: Path
    file: Path
    key: str

    def read(self) -> Tensor:
        with safe_open(self.file, framework="pt") as handle:
            return handle.get_tensor(self.key)

    @property
    def shape(self) -> tuple[int, ...]:
        with safe_open(self.file, framework="pt") as handle:
            return tuple(handle.get_slice(self.key).get_shape())


@dataclass
class Shards:
    """A checkpoint's pieces: by our name, then tensor rank; several where copies were kept."""

    folder: Path
    values: dict[str, Any] = field(default_factory=dict)  # settings of the run, by dotted path
    pieces: dict[str, dict[int, list[Piece]]] = field(default_factory=dict)

    def add(self, name: str, rank: int, piece: Piece) -> None:
        self.pieces.setdefault(name, {}).setdefault(rank, []).append(piece)

    @property
    def tensor(self) -> int:
        """Number of tensor ranks."""
        return len(self.pieces.get("wte.weight", {}))

    @property
    def version(self) -> float | None:
        """The checkpoint's version, if it states one."""
        stated = self.values.get("checkpoint_version")
        return float(stated) if isinstance(stated, int | float) else None

    def argument(self, name: str) -> Any:
        """A setting of the run that wrote it; None if it is not stated."""
        return self.values.get(f"args.{name}")

    def whole_pieces(self, name: str) -> list[Tensor]:
        """One tensor a rank. Raises ``InputError`` if copies differ or a rank is missing."""
        ranks = self.pieces[name]
        if sorted(ranks) != list(range(self.tensor)):
            raise InputError(
                f"{self.folder}: {name} is there of tensor ranks {sorted(ranks)}, of "
                f"{self.tensor}; put all files of the checkpoint together."
            )
        tensors = []
        for rank in range(self.tensor):
            first, *others = ranks[rank]
            tensors.append(first.read())
            for other in others:
                require_same(name, (first, tensors[-1]), (other, other.read()))
        return tensors


def require_same(name: str, first: tuple[Piece, Tensor], second: tuple[Piece, Tensor]) -> None:
    """Raise ``InputError``, with the size of the difference, unless both hold the same values."""
    (one, left), (other, right) = first, second
    if left.shape != right.shape or not torch.equal(left, right):
        apart = (left.float() - right.float()).abs() if left.shape == right.shape else None
        size = "shapes" if apart is None else f"{int((apart > 0).sum()):,} values"
        by = "" if apart is None else f", by up to {apart.max().item():.3g}"
        raise InputError(
            f"{one.origin} and {other.origin}: {name} is not the same in both: {size} of "
            f"{left.numel():,} differ{by}. Ranks drifted apart in training, or files of several "
            "checkpoints were mixed; take an earlier checkpoint."
        )


def read_shards(source: Path, work: Path) -> Shards:
    """Read a checkpoint's files (a folder of either form, or one that names its latest) into
    ``work``. Raises ``InputError`` for anything else, or for keys that GPT-2 does not have."""
    folder = _latest(source)
    layers = _layer_files(folder)
    ranks = sorted(path for path in folder.glob("mp_rank_*/model_optim_rng.pt"))
    states = sorted(folder.glob("mp_rank_*_model_states.pt"))
    if not layers and not ranks and not states:
        raise InputError(
            f"{folder}: no mp_rank_XX/model_optim_rng.pt and no layer_XX-model_YY-model_states.pt "
            "in it; give the folder of one iteration."
        )
    shards = Shards(folder)
    if layers:
        contents = read_untrusted([*layers, *states[:1]], work)
        shards.values = dict(contents.pop(states[0]).values) if states else {}
        _add_layers(shards, contents)
    else:
        contents = read_untrusted(ranks or states, work)
        shards.values = dict(contents[(ranks or states)[0]].values)
        shards.values.setdefault("checkpoint_version", 0)  # the first form stated none
        _add_ranks(shards, contents)
    return shards


def _layer_files(folder: Path) -> list[Path]:
    """Files of layers by number, which names have in two digits or more, then by tensor rank."""
    matches = [match for path in folder.iterdir() if (match := _LAYER.fullmatch(path.name))]
    matches.sort(key=lambda match: (int(match[1]), int(match[2])))
    return [folder / match[0] for match in matches]


def in_first_order(tensor: Tensor, version: float, head_size: int) -> Tensor:
    """One rank's query_key_value [3 x heads x head size, …] as [3, heads, head size]."""
    rest = tensor.shape[1:]
    if version < 1:
        return tensor
    if version < 2:
        return tensor.view(-1, head_size, 3, *rest).movedim(2, 0).reshape(tensor.shape)
    return tensor.view(-1, 3, head_size, *rest).movedim(1, 0).reshape(tensor.shape)


def our_name(key: str, first_layer: int) -> str | None:
    """Our name of a key; blocks are counted from ``first_layer``. None for what holds no weight.

    Raises ``KeyError`` for a key that GPT-2 does not have.
    """
    inner = _OUTER.sub("", key)
    if inner.endswith("_extra_state"):
        return None
    if inner in _WHOLE:
        return _WHOLE[inner]
    match = re.fullmatch(r"layers\.(\d+)\.(.+)\.(weight|bias)", inner)
    if match is None or match[2] not in _BLOCK:
        raise KeyError(key)
    return f"h.{first_layer + int(match[1])}.{_BLOCK[match[2]]}.{match[3]}"


def _latest(source: Path) -> Path:
    """The folder of one iteration: the one given, or the one that its tracker file names."""
    if not source.is_dir():
        raise InputError(f"{source}: no such folder; give the folder of a checkpoint.")
    for tracker, form in (("latest_checkpointed_iteration.txt", "iter_{:0>7}"), ("latest", "{}")):
        path = source / tracker
        if path.is_file():
            said = path.read_text(errors="replace").strip()
            name = said if not said.isdigit() else form.format(said)
            if Path(name).name != name or not (source / name).is_dir():
                raise InputError(f"{path}: names {said!r}, which is no folder beside it; give one.")
            return source / name
    return source


def _keys(contents: Contents) -> Iterator[str]:
    with safe_open(contents.tensors, framework="pt") as handle:
        yield from handle.keys()


def _add_ranks(shards: Shards, contents: Mapping[Path, Contents]) -> None:
    """Files of ranks: stages in order, each with as many layers as it turns out to hold."""
    places = {}
    for path in contents:
        match = _RANK.search(path.parent.name) or _RANK.search(path.name)
        assert match is not None
        places[path] = int(match[2] or 0), int(match[1])  # stage, tensor rank
    stages = sorted({stage for stage, _ in places.values()})
    _require_row(shards.folder, "pipeline stages", stages, 0)
    first = 0
    for stage in stages:
        count = 0
        for path in (path for path, place in places.items() if place[0] == stage):
            for key in _model_keys(path, contents[path]):
                name = _known(path, key, first)
                if name is not None:
                    shards.add(name, places[path][1], Piece(path, contents[path].tensors, key))
                    if name.startswith("h."):
                        count = max(count, int(name.split(".")[1]) + 1 - first)
        first += count


def _model_keys(path: Path, contents: Contents) -> list[str]:
    """Keys of the model; tensors beside it are random states."""
    keys = list(_keys(contents))
    if any(key.startswith("model1.") for key in keys):
        raise InputError(f"{path}: interleaved pipeline stages (model0, model1); save it without.")
    model = [key for key in keys if key.split(".")[0] in ("model", "module", "model0")]
    if not model:
        raise InputError(f"{path}: no weights under 'model' or 'module'; is it an optimizer file?")
    return model


def _add_layers(shards: Shards, contents: Mapping[Path, Contents]) -> None:
    """Files of layers: what a layer is shows in its keys, and blocks are counted in order."""
    numbers: dict[int, int] = {}  # of a file of a block: which block it is
    for path, content in contents.items():
        match = _LAYER.fullmatch(path.name)
        assert match is not None
        keys = list(_keys(content))
        number, rank = int(match[1]), int(match[2])
        is_block = any(key.endswith("input_layernorm.weight") for key in keys)
        block = numbers.setdefault(number, len(numbers)) if is_block else 0
        for key in keys:
            full = f"final_layernorm.{key}" if key in ("weight", "bias") else key
            name = _known(path, f"layers.{block}.{full}" if is_block else full, 0)
            if name is not None:
                shards.add(name, rank, Piece(path, content.tensors, key))
    _require_row(shards.folder, "layer files of blocks", list(numbers), min(numbers, default=0))


def _require_row(folder: Path, what: str, numbers: list[int], first: int) -> None:
    """Raise ``InputError`` if a number is left out: what is counted on would close the gap."""
    if numbers != list(range(first, first + len(numbers))):
        raise InputError(
            f"{folder}: has {what} {numbers}; put all files of the checkpoint together."
        )


def _known(path: Path, key: str, first_layer: int) -> str | None:
    try:
        return our_name(key.removeprefix("model0."), first_layer)
    except KeyError as error:
        raise InputError(
            f"{path}: {key} is not a parameter of GPT-2: other positions, norms, gates or an "
            "untied head are not computed here."
        ) from error
