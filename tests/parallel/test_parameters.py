"""Parameter groups: every pipeline stage must have the same ones, or ranks wait for ever."""

import pytest
import torch
from torch import nn

from web2gpt.config.training import Model
from web2gpt.model.gpt2 import GPT2
from web2gpt.parallel.parameters import decay_groups


def test_matrices_and_embeddings_are_decayed_vectors_are_not() -> None:
    gpt = GPT2(Model(n_layer=1, n_embd=8, n_head=2, n_positions=4), 11)
    matrices, vectors = decay_groups(gpt.parameters(), 0.1)
    assert (matrices["weight_decay"], vectors["weight_decay"]) == (0.1, 0.0)
    assert {p.dim() for p in matrices["params"]} == {2}
    assert {p.dim() for p in vectors["params"]} == {1}
    kept = [*matrices["params"], *vectors["params"]]
    assert {id(p) for p in kept} == {id(p) for p in gpt.parameters()}


def test_a_stage_that_would_lack_a_group_is_refused_before_anyone_waits() -> None:
    for shape in ((4, 4), (4,)):
        with pytest.raises(ValueError, match="give it a block"):
            decay_groups([nn.Parameter(torch.zeros(shape))], 0.1)
