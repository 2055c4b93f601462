"""Activations made again in the backward pass instead of being kept (Chen et al. 2016).

``full`` keeps only a block's input; ``selective`` only queries, keys and values of the attention's
core, whose activations are large for what they cost (Korthikanti et al. 2022). The non-reentrant
form: the other one silently loses gradients where a block's input needs none.

A layer's dropout stream is started inside what is recomputed, by the key of the micro-batch that
it was first computed for: under a pipeline another one has gone forward since.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from web2gpt.model.gpt2 import Block
from web2gpt.parallel.compile import compile_block
from web2gpt.parallel.dropout import Key, Streams, seed_core, seed_layer

Recompute = Literal["none", "selective", "full"]


def prepare_block(
    block: Block,
    layer: int,
    kind: Recompute,
    streams: Streams | None,
    *,
    compiled: bool = False,
) -> Block:
    """Have ``block`` recompute as ``kind`` says, with its dropout streams, if there is dropout.

    Parameters keep their names. In a compiled block attention's core has no stream of its own,
    and is not recomputed by itself (``selective``): the compiler decides what of a block is kept.
    Only where the core's stream must be a rank's own, attention is left uncompiled.
    """
    whole = not (streams and streams.splits and block.attn.core.dropout)
    if streams and not (compiled and whole):
        seed_core(block, streams, layer)
    if kind == "selective" and not (compiled and whole):
        _recompute(block.attn.core, None, layer)
    if compiled:
        compile_block(block, whole=whole)
    _recompute(block, streams, layer, always=kind == "full")
    return block


def prepare_input(module: nn.Module, streams: Streams | None) -> None:
    """Start the dropout stream of the layer that embeds tokens: layer 0; blocks are 1, 2, …"""
    _recompute(module, streams, 0, always=False)


def _recompute(
    module: nn.Module, streams: Streams | None, layer: int, *, always: bool = True
) -> None:
    if streams:
        forward = seed_layer(module, streams, layer)
    elif always:
        forward = _without_key(module.forward)
    else:
        return

    def recomputed(*inputs: Tensor) -> Any:
        key = streams.key if streams else (0, 0)
        if not always or not torch.is_grad_enabled():
            return forward(key, *inputs)
        return checkpoint(forward, key, *inputs, use_reentrant=False)

    module.forward = recomputed


def _without_key(forward: Callable[..., Any]) -> Callable[..., Any]:
    def keyless(key: Key, *inputs: Tensor) -> Any:
        return forward(*inputs)

    return keyless
