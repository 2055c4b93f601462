"""Checkpoints and models whose descriptions lie: each is refused in a line, before anything of the
size that they state is made."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoint_files import VOCAB, write_checkpoint
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

from web2gpt.checkpoint.huggingface import load_model
from web2gpt.checkpoint.inspect import describe, verify
from web2gpt.errors import InputError
from web2gpt.model.gpt2 import GPT2

WTE = "wte.weight"


@pytest.fixture
def checkpoint(tmp_path: Path, gpt2: GPT2) -> Path:
    return write_checkpoint(tmp_path / "step_00000007", gpt2, 2, 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model as transformers writes it."""
    config = GPT2Config(n_layer=1, n_embd=8, n_head=2, n_positions=8, vocab_size=VOCAB)
    GPT2LMHeadModel(config).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def larger_vocabulary(index: dict[str, Any]) -> None:
    index["model"]["vocab_size"] = index["tensors"][WTE]["shape"][0] = 1 << 39
    index["tensors"][WTE]["parts"][1]["ranges"] = [[0, 136, (1 << 39) - 136]]


def part(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda index: index["tensors"][WTE]["parts"][0].update(values)


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index["model"].update(n_layer=10**9),
        lambda index: index["model"].update(n_embd=4 * 10**15),
        lambda index: index.update(model=[1, 2]),
        larger_vocabulary,
        part(ranges=[[0, 0, 10**15]]),
        part(ranges=[[130, 0, 136]]),
        part(ranges=[["0", 0, 136]]),
        part(dim=7),
        part(dim="0"),
        part(file="../elsewhere.safetensors"),
        lambda index: index["tensors"][WTE].update(dtype="save"),
        lambda index: index["files"].update({"../a": {"bytes": 1, "blake2b": ""}}),
        lambda index: index.update(precision="fp8"),
        lambda index: index.update(step="seven"),
    ],
)
def test_an_index_that_lies_is_refused(
    checkpoint: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    edit(checkpoint / "index.json", change)
    with pytest.raises(InputError):
        verify(checkpoint)


def test_counters_of_other_types_are_refused(checkpoint: Path) -> None:
    edit(checkpoint / "state.json", lambda state: state.update(tokens=None))
    with pytest.raises(InputError, match=r"state\.json: not what train writes"):
        describe(checkpoint)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n_layer", 10**9),
        ("n_embd", 4 * 10**15),
        ("vocab_size", -1),
        ("vocab_size", 1e300),
        ("activation_function", ["gelu"]),
    ],
)
def test_a_config_that_lies_is_refused(folder: Path, key: str, value: Any) -> None:
    edit(folder / "config.json", lambda config: config.update({key: value}))
    with pytest.raises(InputError, match=key):
        load_model(folder)


@pytest.mark.parametrize("weight_map", [[1], {"a": 1}, {"a": ".."}, None])
def test_an_index_of_files_that_is_none_is_refused(folder: Path, weight_map: Any) -> None:
    (folder / "model.safetensors").unlink()
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(InputError, match=r"index\.json"):
        load_model(folder)


def test_weights_that_are_no_real_numbers_or_stand_there_twice_are_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    key = f"transformer.{WTE}"
    save_file({**tensors, key: tensors[key].to(torch.int8)}, path)
    with pytest.raises(InputError, match=f"{key} is I8"):
        load_model(folder)
    save_file({**tensors, WTE: tensors[key] * 2}, path)
    with pytest.raises(InputError, match="there twice"):
        load_model(folder)
