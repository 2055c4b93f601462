"""Slices of a tensor: each rank's are what the layers compute with, and together they are whole."""

import pytest
import torch

from web2gpt.config.training import Model
from web2gpt.model.gpt2 import parameter_shapes
from web2gpt.parallel.split import cut, is_split, paste, slice_of, without_padding

MODEL = Model(n_layer=2, n_embd=16, n_head=4, n_positions=8)
VOCAB = 53


@pytest.mark.parametrize("tensor", [1, 2, 4])
def test_slices_of_all_ranks_make_the_tensor_whole_again(tensor: int) -> None:
    for name, shape in parameter_shapes(MODEL, VOCAB).items():
        whole = torch.randn(shape)
        again = torch.full(shape, torch.nan)
        for rank in range(tensor):
            part = slice_of(name, shape, tensor=tensor, rank=rank, padded_vocab=64)
            local = cut(whole, part)
            assert tuple(local.shape) == part.shape
            paste(without_padding(local, part), part, again)
        assert torch.equal(again, whole), name
        assert is_split(name) == (slice_of(name, shape, tensor=4, rank=0, padded_vocab=64).dim
                                  is not None)  # fmt: skip


def test_a_rank_holds_the_same_heads_of_queries_keys_and_values() -> None:
    heads, size, width = 4, 4, 16
    whole = torch.arange(3 * width).repeat_interleave(width).view(3 * width, width)
    part = slice_of("h.0.attn.c_attn.weight", whole.shape, tensor=2, rank=1)
    local = cut(whole, part)[:, 0].view(3, heads // 2, size)
    expected = torch.arange(3 * width).view(3, heads, size)[:, 2:]
    assert torch.equal(local, expected)


def test_padding_rows_come_last_are_zero_and_may_fill_a_rank() -> None:
    whole = torch.ones(53, 16)
    for rank, rows in enumerate((32, 21, 0, 0)):
        part = slice_of("wte.weight", whole.shape, tensor=4, rank=rank, padded_vocab=128)
        local = cut(whole, part)
        assert local.shape == (32, 16) and part.length == rows
        assert torch.equal(local[:rows], whole[:rows]) and not local[rows:].any()


def test_what_does_not_divide_and_names_that_are_not_ours_are_refused() -> None:
    with pytest.raises(ValueError, match="does not divide into 3"):
        slice_of("h.0.mlp.c_fc.weight", (64, 16), tensor=3, rank=0)
    with pytest.raises(KeyError, match="not a parameter"):
        slice_of("transformer.wte.weight", (64, 16), tensor=1, rank=0)
