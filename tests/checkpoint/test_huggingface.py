"""Hugging Face folders made by transformers, read here."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

from web2gpt.checkpoint.huggingface import HuggingFaceFolder, Stated, load_model
from web2gpt.errors import InputError

VOCAB = 77


@pytest.fixture
def theirs() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_embd": 24, "n_head": 3, "n_positions": 20}
    return GPT2LMHeadModel(GPT2Config(**sizes, vocab_size=VOCAB, initializer_range=0.3)).eval()


def save(theirs: GPT2LMHeadModel, folder: Path, **changes: Any) -> Path:
    """The model as transformers writes it, with changes to its config.json."""
    theirs.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_a_folder_of_transformers_gives_the_same_logits(
    theirs: GPT2LMHeadModel, tmp_path: Path
) -> None:
    ours, stated = load_model(save(theirs, tmp_path))
    assert stated.vocab_size == VOCAB
    assert not ours.training
    tokens = torch.randint(VOCAB, (2, 20))
    with torch.no_grad():
        torch.testing.assert_close(ours(tokens), theirs(tokens).logits, atol=1e-5, rtol=0)


def test_split_files_are_read(theirs: GPT2LMHeadModel, tmp_path: Path) -> None:
    theirs.save_pretrained(tmp_path, max_shard_size="20KB")
    assert not (tmp_path / "model.safetensors").exists()
    ours, _ = load_model(tmp_path)
    assert torch.equal(ours.head.ln_f.bias, theirs.transformer.ln_f.bias)


def test_files_of_old_with_masks_and_without_prefix_are_read(
    theirs: GPT2LMHeadModel, tmp_path: Path
) -> None:
    folder = save(theirs, tmp_path)
    tensors = load_file(folder / "model.safetensors")
    old = {key.removeprefix("transformer."): value for key, value in tensors.items()}
    old["h.0.attn.bias"] = torch.ones(1, 1, 20, 20).tril()
    old["lm_head.weight"] = old["wte.weight"].clone()
    save_file(old, folder / "model.safetensors")
    ours, _ = load_model(folder)
    assert torch.equal(ours.embedding.wte.weight, theirs.transformer.wte.weight)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "gpt_neox"),
        ("activation_function", "relu"),
        ("n_inner", 50),
        ("scale_attn_by_inverse_layer_idx", True),
        ("scale_attn_weights", False),
        ("add_cross_attention", True),
        ("tie_word_embeddings", False),
        ("n_embd", "wide"),
        ("n_head", 5),
    ],
)
def test_what_is_not_computed_here_is_refused_by_name(
    theirs: GPT2LMHeadModel, tmp_path: Path, key: str, value: object
) -> None:
    with pytest.raises(InputError, match=key):
        Stated.read(save(theirs, tmp_path, **{key: value}))


def test_a_size_that_config_does_not_state_is_not_guessed(
    theirs: GPT2LMHeadModel, tmp_path: Path
) -> None:
    folder = save(theirs, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    del config["n_layer"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="n_layer"):
        Stated.read(folder)


def test_missing_unknown_and_misshapen_keys_are_refused(
    theirs: GPT2LMHeadModel, tmp_path: Path
) -> None:
    folder = save(theirs, tmp_path)
    tensors = load_file(folder / "model.safetensors")
    spoiled = {
        "is missing": {k: v for k, v in tensors.items() if not k.endswith("ln_f.bias")},
        "is not a parameter": tensors | {"transformer.h.0.attn.rotary": torch.zeros(3)},
        "has shape": tensors | {"transformer.wpe.weight": torch.zeros(21, 24)},
        "GPT-2 ties it": tensors | {"lm_head.weight": torch.zeros(VOCAB, 24)},
    }
    for message, content in spoiled.items():
        save_file(content, folder / "model.safetensors")
        with pytest.raises(InputError, match=message), HuggingFaceFolder(folder):
            pass


def test_a_folder_without_weights_is_an_error_never_random_weights(
    theirs: GPT2LMHeadModel, tmp_path: Path
) -> None:
    folder = save(theirs, tmp_path)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"no model\.safetensors"):
        load_model(folder)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(InputError, match="cannot be read"):
        load_model(folder)


def test_an_index_cannot_lead_out_of_its_folder(theirs: GPT2LMHeadModel, tmp_path: Path) -> None:
    folder = save(theirs, tmp_path / "model")
    (folder / "model.safetensors").rename(tmp_path / "elsewhere.safetensors")
    index = {"weight_map": {"transformer.wte.weight": "../elsewhere.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match="not the name of a file"):
        load_model(folder)
