"""Hugging Face's GPT-2 folder: the form in which a model leaves here, and in which one may enter.

Hugging Face prefixes the parameters with ``transformer.`` and keeps the linear layers' matrices as
[in, out]; here they are [out, in]. Nothing else differs, and this file alone knows of it. What
this model does not compute (other widths of the MLP, attention scaled by layer, an untied head) is
refused, never approximated.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from web2gpt.checkpoint.sizes import stated_model, stated_shapes
from web2gpt.config.training import Model
from web2gpt.errors import InputError
from web2gpt.model.gpt2 import GPT2, model_of_weights

WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
PREFIX = "transformer."

_TRANSPOSED = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")
_TIED = "lm_head.weight"
_REAL = ("F64", "F32", "F16", "BF16")  # safetensors' names of types
_BUFFERS = (".attn.bias", ".attn.masked_bias")  # the causal mask, in files of old
_ACTIVATIONS = {
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",  # one formula under three names
    "gelu_fast": "gelu_new",
    "gelu": "gelu",
}
_SIZES = ("vocab_size", "n_layer", "n_embd", "n_head", "n_positions")
_FIXED = {  # what the architecture must not ask for otherwise
    "model_type": "gpt2",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}


def key_of(name: str) -> str:
    """The key in a Hugging Face file of our parameter ``name``."""
    return PREFIX + name


def turned(name: str, tensor: Tensor) -> Tensor:
    """The tensor in the other side's orientation; its own inverse."""
    return tensor.t() if name.endswith(_TRANSPOSED) else tensor


def turned_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of ``turned(name, tensor)``."""
    return shape[::-1] if name.endswith(_TRANSPOSED) else shape


def model_config(model: Model, vocab_size: int, end_of_text: int, dtype: str) -> dict[str, Any]:
    """config.json. ``vocab_size`` is the true one, without padding."""
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": vocab_size,
        "n_positions": model.n_positions,
        "n_embd": model.n_embd,
        "n_layer": model.n_layer,
        "n_head": model.n_head,
        "n_inner": None,
        "activation_function": model.activation_function,
        "embd_pdrop": model.embd_pdrop,
        "attn_pdrop": model.attn_pdrop,
        "resid_pdrop": model.resid_pdrop,
        "layer_norm_epsilon": model.layer_norm_epsilon,
        "initializer_range": model.initializer_range,
        "scale_attn_weights": True,
        "tie_word_embeddings": True,
        "use_cache": True,
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_text,
        "dtype": dtype,
    }


def generation_config(end_of_text: int) -> dict[str, Any]:
    """generation_config.json: end-of-text starts, ends and pads; nothing else is decided here."""
    return dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), end_of_text)


def tokenizer_config(model: Model, end_of_text: str) -> dict[str, Any]:
    """tokenizer_config.json, by which AutoTokenizer takes tokenizer.json as it stands."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": end_of_text,
        "eos_token": end_of_text,
        "unk_token": end_of_text,
        "pad_token": end_of_text,
        "model_max_length": model.n_positions,
        "clean_up_tokenization_spaces": False,
    }


@dataclass(frozen=True)
class Stated:
    """What a folder's config.json states."""

    model: Model
    vocab_size: int
    end_of_text: int | None

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Raises ``InputError`` if it is missing, or states a model that is not computed here."""
        path = folder / "config.json"
        config = _read_object(path)
        for key, allowed in _FIXED.items():
            if config.get(key, allowed) != allowed:
                raise InputError(
                    f"{path}: {key} = {config[key]!r} is not computed here, only {allowed!r} is; "
                    "take another model."
                )
        activation = config.get("activation_function", "gelu_new")
        if not isinstance(activation, str) or activation not in _ACTIVATIONS:
            raise InputError(
                f"{path}: activation_function = {activation!r} is not supported; "
                f"those that are: {', '.join(_ACTIVATIONS)}."
            )
        if absent := [key for key in _SIZES if key not in config]:
            raise InputError(f"{path}: states no {absent[0]}, which is not guessed; add it there.")
        fields = {key: value for key, value in config.items() if key in Model.model_fields}
        model = stated_model({**fields, "activation_function": _ACTIVATIONS[activation]}, path)
        if config.get("n_inner") not in (None, 4 * model.n_embd):
            raise InputError(
                f"{path}: n_inner = {config['n_inner']} is not 4 x n_embd; take another model."
            )
        end = config.get("eos_token_id")
        return cls(model, config["vocab_size"], end if type(end) is int else None)


class HuggingFaceFolder:
    """``with HuggingFaceFolder(path) as folder: folder.tensor("wte.weight")``, under our names and
    in our orientation. Raises ``InputError`` on entering if a key is missing or unknown."""

    def __init__(self, path: Path):
        self.path = path
        self.stated = Stated.read(path)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._where: dict[str, tuple[Any, str]] = {}  # our name: file, key in it
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            files = {path: stack.enter_context(_open(path)) for path in _weight_files(self.path)}
            keys = [(key, file) for file, handle in files.items() for key in handle.keys()]  # noqa: SIM118  (not a mapping)
            stated = self.stated
            self.shapes = stated_shapes(stated.model, stated.vocab_size, len(keys), self.path)
            for key, file in keys:
                self._place(key, files[file], file)
            missing = [name for name in self.shapes if name not in self._where]
            if missing:
                raise InputError(
                    f"{self.path}: {missing[0]} is missing ({len(missing)} such keys); put all "
                    "files there."
                )
            self._check_tied()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *rest: object) -> None:
        self._stack.close()

    def tensor(self, name: str) -> Tensor:
        """One parameter, [out, in] if a matrix, in the type it is stored in."""
        handle, key = self._where[name]
        return turned(name, handle.get_tensor(key))

    def _place(self, key: str, handle: Any, file: Path) -> None:
        name = key.removeprefix(PREFIX)
        if name.endswith(_BUFFERS):
            return
        if name not in self.shapes and name != _TIED:
            raise InputError(f"{file}: {key} is not a parameter of this GPT-2; take another model.")
        shape = tuple(handle.get_slice(key).get_shape())
        wanted = turned_shape(name, self.shapes["wte.weight" if name == _TIED else name])
        if shape != wanted:
            raise InputError(
                f"{file}: {key} has shape {shape}, by config.json {wanted}; mend that."
            )
        if (dtype := handle.get_slice(key).get_dtype()) not in _REAL:
            raise InputError(f"{file}: {key} is {dtype}; convert it to one of {', '.join(_REAL)}.")
        if name in self._where:
            raise InputError(f"{file}: {key} is there twice; take the model from its source again.")
        self._where[name] = handle, key

    def _check_tied(self) -> None:
        if _TIED in self._where and not torch.equal(self.tensor(_TIED), self.tensor("wte.weight")):
            raise InputError(
                f"{self.path}: {_TIED} is not wte, to which GPT-2 ties it; take another model."
            )


def load_model(path: Path, device: torch.device | str = "cpu") -> tuple[GPT2, Stated]:
    """The model of a Hugging Face GPT-2 folder, in float32 and evaluation mode."""
    with HuggingFaceFolder(path) as folder:
        stated = folder.stated
        return model_of_weights(stated.model, stated.vocab_size, folder.tensor, device), stated


def _weight_files(folder: Path) -> Iterator[Path]:
    index = folder / WEIGHTS_INDEX
    if (folder / WEIGHTS).exists():
        yield folder / WEIGHTS
    elif index.exists():
        names = _read_object(index).get("weight_map")
        if not isinstance(names, dict) or not all(isinstance(n, str) for n in names.values()):
            raise InputError(f"{index}: has no weight_map of file names; get the model again.")
        for name in sorted(set(names.values())):
            if Path(name).name != name or name == "..":
                raise InputError(f"{index}: {name!r} is not the name of a file beside it.")
            yield folder / name
    else:
        raise InputError(f"{folder}: no {WEIGHTS} in it; give the folder of a GPT-2 model.")


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{path}: cannot be read as safetensors ({error}); get it again."
        ) from error


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = orjson.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; give the folder of a GPT-2 model.") from error
    except orjson.JSONDecodeError as error:
        raise InputError(
            f"{path}: not JSON ({error}); get the model from its source again."
        ) from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: not a JSON object; get the model from its source again.")
    return value
