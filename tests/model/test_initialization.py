"""Initial weights: a function of seed, name and global shape."""

import pytest
import torch

from web2gpt.config.training import Model
from web2gpt.model.gpt2 import GPT2
from web2gpt.model.initialization import initial_tensor, initialize

MODEL = Model(n_layer=8, n_embd=64, n_head=4, n_positions=32)
PINNED = [-0.011974042, -0.00760559, 0.010136099, 0.01698662]


def test_values_depend_on_seed_name_and_shape_alone() -> None:
    first = initial_tensor("wte.weight", (100, 64), MODEL, seed=1)
    torch.manual_seed(99)
    assert torch.equal(first, initial_tensor("wte.weight", (100, 64), MODEL, seed=1))
    assert not torch.equal(first, initial_tensor("wte.weight", (100, 64), MODEL, seed=2))
    assert not torch.equal(first, initial_tensor("wpe.weight", (100, 64), MODEL, seed=1))


def test_values_are_these_on_every_machine() -> None:
    values = initial_tensor("h.0.mlp.c_fc.weight", (2, 2), MODEL, seed=1234).flatten().tolist()
    assert values == pytest.approx(PINNED, abs=1e-8)


def test_spread_is_gpt2s() -> None:
    plain = initial_tensor("h.0.mlp.c_fc.weight", (256, 256), MODEL, seed=0)
    scaled = initial_tensor("h.0.mlp.c_proj.weight", (256, 256), MODEL, seed=0)
    assert plain.mean().item() == pytest.approx(0, abs=4 * 0.02 / 256)
    assert plain.std().item() == pytest.approx(0.02, rel=0.02)
    assert scaled.std().item() == pytest.approx(0.02 / 16**0.5, rel=0.02)


def test_biases_are_0_and_norms_1() -> None:
    gpt2 = GPT2(MODEL, 50)
    initialize(gpt2.tensors(), MODEL, seed=3)
    for name, parameter in gpt2.tensors().items():
        if name.endswith(".bias"):
            assert not parameter.any(), name
        elif ".ln_" in f".{name}":
            assert (parameter == 1).all(), name
        else:
            assert parameter.std() > 0, name
