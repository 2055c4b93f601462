"""Matrices laid out once for the CPU's own matrix kernels.

One token a text makes products of a few rows, which take as long as reading the matrix does; the
general kernels reorder or stride through it at every call. oneDNN reads a large matrix that was put
in its block order beforehand at up to twice their rate. The operators are those that torch's
compiler emits for linear layers on a CPU. For a small matrix the call costs more than it saves;
there [in, out] as it is read is the faster order. Where the operators are not to be had, or do not
compute what they should, layers stay as they are: results differ in their last bits only.
"""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from web2gpt.model.gpt2 import GPT2, Block

ROWS = 8  # what the block order is chosen for; any number is computed
LARGE = 1 << 18  # values from which the block order is the faster one, by measurement


class PackedLinear(nn.Module):
    """``F.linear`` with a weight [out, in] in block order: (…, in) -> (…, out)."""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        super().__init__()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), ROWS)
        self.bias = None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.size(-1))
        y = torch.ops.mkldnn._linear_pointwise(rows, self.packed, self.bias, "none", [], "")
        return y.view(*x.shape[:-1], -1)


class TurnedLinear(nn.Module):
    """``F.linear`` with a weight [out, in] kept as [in, out]: (…, in) -> (…, out)."""

    def __init__(self, weight: Tensor, bias: Tensor):
        super().__init__()
        self.turned, self.bias = weight.detach().t().contiguous(), bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        y = torch.addmm(self.bias, x.reshape(-1, x.size(-1)), self.turned)
        return y.view(*x.shape[:-1], -1)


def pack(model: GPT2) -> GPT2:
    """Replace the linear layers of a float32 model on a CPU, in place, if that is possible; what
    acts in training only goes."""
    if packs(model.embedding.wte.weight):
        for block in cast(list[Block], list(model.h)):
            for owner in (block.attn, block.mlp):
                for name, layer in list(owner.named_children()):
                    if isinstance(layer, nn.Linear):
                        kind = PackedLinear if layer.weight.numel() >= LARGE else TurnedLinear
                        setattr(owner, name, kind(layer.weight, layer.bias))
                    elif isinstance(layer, nn.Dropout):
                        setattr(owner, name, nn.Identity())
    return model


def projection(model: GPT2) -> nn.Module:
    """The head's product with the token embedding, packed if possible: (…, C) -> (…, V)."""
    weight = model.head.wte.weight
    return PackedLinear(weight, None) if packs(weight) else _Tied(weight)


class _Tied(nn.Module):
    def __init__(self, weight: Tensor):
        super().__init__()
        self.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)


def packs(weight: Tensor) -> bool:
    """Whether matrices of this kind can be packed here, by trying one."""
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        return False
    generator = torch.Generator().manual_seed(0)
    x, matrix = (torch.randn(rows, 16, generator=generator) for rows in (3, 24))
    bias = torch.randn(24, generator=generator)
    try:
        found = PackedLinear(matrix, bias)(x)
    except (AttributeError, RuntimeError):
        return False
    return torch.allclose(found, F.linear(x, matrix, bias), atol=1e-5)
