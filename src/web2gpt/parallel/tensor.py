"""Tensor-parallel layers, and how they replace a model's own from outside.

A block has two pairs of linear layers: the first of a pair is cut by outputs (``ColumnLinear``),
the second by inputs (``RowLinear``), so that a pair costs one sum forward and one backward
(Shoeybi et al. 2019). The embedding, tied to the head, is cut by rows of the padded vocabulary.

Layers are made without values; ``parallel.parameters`` fills them from global tensors.
C = n_embd, t = size of the group, V = padded vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from web2gpt.model.gpt2 import Block, Embedding, Head
from web2gpt.parallel.communication import TensorGroup, copy_to_ranks, sum_over_ranks


class ColumnLinear(nn.Module):
    """This rank's outputs of a linear layer: weight (out / t, in), bias (out / t)."""

    def __init__(self, layer: nn.Linear, group: TensorGroup):
        super().__init__()
        rows = layer.out_features // group.size
        self.weight = _parameter(layer.weight, (rows, layer.in_features))
        self.bias = _parameter(layer.bias, (rows,))
        self.group = group

    def forward(self, x: Tensor) -> Tensor:  # (B, T, in) -> (B, T, out / t)
        return F.linear(copy_to_ranks(x, self.group), self.weight, self.bias)


class RowLinear(nn.Module):
    """A linear layer over this rank's inputs: weight (out, in / t), and the whole bias.

    The bias is added once, after the sum: it is the same on every rank.
    """

    def __init__(self, layer: nn.Linear, group: TensorGroup):
        super().__init__()
        columns = layer.in_features // group.size
        self.weight = _parameter(layer.weight, (layer.out_features, columns))
        self.bias = _parameter(layer.bias, (layer.out_features,))
        self.group = group

    def forward(self, x: Tensor) -> Tensor:  # (B, T, in / t) -> (B, T, out)
        return sum_over_ranks(F.linear(x, self.weight), self.group) + self.bias


class VocabularyEmbedding(nn.Module):
    """This rank's rows of the token embedding: weight (V / t, C)."""

    def __init__(self, layer: nn.Embedding, padded_vocab: int, group: TensorGroup):
        super().__init__()
        rows = padded_vocab // group.size
        self.weight = _parameter(layer.weight, (rows, layer.embedding_dim))
        self.group = group

    def forward(self, tokens: Tensor) -> Tensor:  # (B, T) -> (B, T, C)
        if self.group.size == 1:
            return F.embedding(tokens, self.weight)
        rows = self.weight.size(0)
        local = tokens - self.group.rank * rows  # (B, T)
        here = (local >= 0) & (local < rows)
        x = F.embedding(local.where(here, 0), self.weight) * here.unsqueeze(-1)  # (B, T, C)
        return sum_over_ranks(x, self.group)

    def logits(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, T, V / t)
        """This rank's columns of the tied head's logits."""
        return F.linear(copy_to_ranks(x, self.group), self.weight)


class VocabularyHead(nn.Module):
    """Final norm, and this rank's columns of the logits."""

    def __init__(self, ln_f: nn.LayerNorm, wte: VocabularyEmbedding):
        super().__init__()
        self.ln_f = ln_f
        self.wte = wte

    def forward(self, x: Tensor) -> Tensor:  # (B, T, C) -> (B, T, V / t)
        return self.wte.logits(self.ln_f(x))


def split_block(block: Block, group: TensorGroup) -> Block:
    """Replace a block's linear layers by this rank's parts of them."""
    for half, first in ((block.attn, "c_attn"), (block.mlp, "c_fc")):
        setattr(half, first, ColumnLinear(getattr(half, first), group))
        half.c_proj = RowLinear(half.c_proj, group)  # type: ignore[assignment]
    return block


def split_embedding(
    embedding: Embedding, padded_vocab: int, group: TensorGroup
) -> VocabularyEmbedding:
    """Replace the token embedding by this rank's rows of it, padded; give these."""
    wte = VocabularyEmbedding(embedding.wte, padded_vocab, group)
    embedding.wte = wte  # type: ignore[assignment]
    return wte


def split_head(head: Head, wte: VocabularyEmbedding) -> VocabularyHead:
    """The head over this rank's rows of the embedding."""
    return VocabularyHead(head.ln_f, wte)


def _parameter(like: Tensor, shape: tuple[int, ...]) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape, dtype=like.dtype, device=like.device))
