"""Tensor-parallel layers, and how they replace a model's own from outside.

A block has two pairs of linear layers: the first of a pair is cut by outputs (``ColumnLinear``),
the second by inputs (``RowLinear``), so that a pair costs one sum forward and one backward
(Shoeybi et al. 2019). The embedding, tied to the head, is cut by rows of the padded vocabulary.

Layers are made without values; ``parallel.parameters`` fills them from global tensors.
C = n_embd, t = size of the group, V = padded vocabulary. S is the number of positions that a rank
holds between pairs: T, or T / t under sequence parallelism.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from web2gpt.model.gpt2 import Block, Embedding, Head
from web2gpt.parallel.communication import (
    TensorGroup,
    leave_split,
    linear_in,
    linear_out,
    own_positions,
    share,
)


class ColumnLinear(nn.Module):
    """This rank's outputs of a linear layer: weight (out / t, in), bias (out / t)."""

    def __init__(self, layer: nn.Linear, group: TensorGroup):
        super().__init__()
        rows = layer.out_features // group.size
        self.weight = _parameter(layer.weight, (rows, layer.in_features))
        self.bias = _parameter(layer.bias, (rows,))
        self.group = group

    def forward(self, x: Tensor) -> Tensor:  # (B, S, in) -> (B, T, out / t)
        return linear_in(x, self.weight, self.bias, self.group)


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

    def forward(self, x: Tensor) -> Tensor:  # (B, T, in / t) -> (B, S, out)
        return linear_out(x, self.weight, self.group) + share(self.bias, self.group)


class SharedLayerNorm(nn.Module):
    """A layer norm, the same on every rank, over the positions that this rank holds."""

    def __init__(self, layer: nn.LayerNorm, group: TensorGroup):
        super().__init__()
        self.weight = _parameter(layer.weight, tuple(layer.weight.shape))
        self.bias = _parameter(layer.bias, tuple(layer.bias.shape))
        self.eps, self.group = layer.eps, group

    def forward(self, x: Tensor) -> Tensor:  # (B, S, C) -> (B, S, C)
        weight, bias = share(self.weight, self.group), share(self.bias, self.group)
        return F.layer_norm(x, weight.shape, weight, bias, self.eps)


class PositionEmbedding(nn.Module):
    """The position embedding, the same on every rank, of the positions that this rank holds."""

    def __init__(self, layer: nn.Embedding, group: TensorGroup):
        super().__init__()
        self.weight = _parameter(layer.weight, tuple(layer.weight.shape))
        self.group = group

    def forward(self, positions: Tensor) -> Tensor:  # (T,) -> (S, C)
        own = own_positions(positions, self.group, 0)  # (S,)
        return F.embedding(own, share(self.weight, self.group))


class VocabularyEmbedding(nn.Module):
    """This rank's rows of the token embedding: weight (V / t, C)."""

    def __init__(self, layer: nn.Embedding, padded_vocab: int, group: TensorGroup):
        super().__init__()
        rows = padded_vocab // group.size
        self.weight = _parameter(layer.weight, (rows, layer.embedding_dim))
        self.group = group

    def forward(self, tokens: Tensor) -> Tensor:  # (B, T) -> (B, S, C)
        if self.group.size == 1:
            return F.embedding(tokens, self.weight)
        rows = self.weight.size(0)
        local = tokens - self.group.rank * rows  # (B, T)
        here = (local >= 0) & (local < rows)
        x = F.embedding(local.where(here, 0), self.weight) * here.unsqueeze(-1)  # (B, T, C)
        return leave_split(x, self.group)

    def logits(self, x: Tensor) -> Tensor:  # (B, S, C) -> (B, T, V / t)
        """This rank's columns of the tied head's logits."""
        return linear_in(x, self.weight, None, self.group)


class VocabularyHead(nn.Module):
    """Final norm, and this rank's columns of the logits."""

    def __init__(self, ln_f: nn.LayerNorm, wte: VocabularyEmbedding):
        super().__init__()
        self.ln_f = split_norm(ln_f, wte.group)
        self.wte = wte

    def forward(self, x: Tensor) -> Tensor:  # (B, S, C) -> (B, T, V / t)
        return self.wte.logits(self.ln_f(x))


def split_block(block: Block, group: TensorGroup) -> Block:
    """Replace a block's layers by this rank's parts of them, which are called alike."""
    for norm in ("ln_1", "ln_2"):
        setattr(block, norm, split_norm(getattr(block, norm), group))
    for half, first in ((block.attn, "c_attn"), (block.mlp, "c_fc")):
        setattr(half, first, ColumnLinear(getattr(half, first), group))
        half.c_proj = RowLinear(half.c_proj, group)  # type: ignore[assignment]  # called alike
    return block


def split_embedding(
    embedding: Embedding, padded_vocab: int, group: TensorGroup
) -> VocabularyEmbedding:
    """Replace the token embedding by this rank's rows of it, padded; give these."""
    wte = VocabularyEmbedding(embedding.wte, padded_vocab, group)
    embedding.wte = wte  # type: ignore[assignment]  # called alike
    embedding.wpe = PositionEmbedding(embedding.wpe, group)  # type: ignore[assignment]  # alike
    return wte


def split_norm(norm: nn.LayerNorm, group: TensorGroup) -> nn.Module:
    """The norm of this rank's positions; the layer itself if it holds all of them."""
    return SharedLayerNorm(norm, group) if group.sequence else norm


def split_head(head: Head, wte: VocabularyEmbedding) -> VocabularyHead:
    """The head over this rank's rows of the embedding."""
    return VocabularyHead(head.ln_f, wte)


def _parameter(like: Tensor, shape: tuple[int, ...]) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape, dtype=like.dtype, device=like.device))
