"""Activations made again in the backward pass instead of being kept (Chen et al. 2016).

``full`` keeps only a block's input; ``selective`` only queries, keys and values of the attention's
core, whose activations are large for what they cost (Korthikanti et al. 2022). The non-reentrant
form: the other one silently loses gradients where a block's input needs none.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from web2gpt.model.gpt2 import Block


def recompute_block(block: Block, kind: Literal["none", "selective", "full"]) -> Block:
    """Have ``block`` recompute as ``kind`` says; its parameters keep their names."""
    if kind == "full":
        _recompute(block)
    elif kind == "selective":
        _recompute(block.attn.core)
    return block


def _recompute(module: nn.Module) -> None:
    forward: Callable[..., Any] = module.forward

    def recomputed(*inputs: torch.Tensor) -> Any:
        if not torch.is_grad_enabled():
            return forward(*inputs)
        return checkpoint(forward, *inputs, use_reentrant=False)

    module.forward = recomputed
