"""What ranks do to see how long gathered weights stay under ZeRO 3."""

from unittest.mock import patch

import torch
from cells import Cell, micro_batches
from rank_tasks import build
from torch import Tensor


def blocks_that_are_whole(cell: Cell, reuse: int) -> tuple[bool, bool]:
    """Whether a block's weight is whole after the forward pass, and after the backward pass, of a
    step's second micro-batch: in the first DeepSpeed only learns the order of layers. Nothing is
    gathered ahead, which would keep a model as small as this one whole by itself."""
    with patch.multiple("web2gpt.parallel.deepspeed_config", REUSE=reuse, BUCKET=1):
        engine = build(cell)
    weight = engine.tensors["h.1.mlp.c_fc.weight"].parameter
    whole = []
    for tokens, targets in list(micro_batches(engine, 0))[:2]:
        loss = engine._loss(engine.deepspeed(tokens), targets)
        whole.append(weight.numel() > 0)
        engine.deepspeed.backward(loss)
        whole.append(weight.numel() > 0)
        engine.deepspeed.step()
    engine.close()
    return whole[2], whole[3]


def weights_kept_whole(cell: Cell) -> list[tuple[int, ...]]:
    """Shapes of what the graph of a forward pass keeps of blocks' weights, as views of them.

    ZeRO 3 frees a gathered weight after the first forward pass, but not under a view of it.
    """
    torch.compiler.reset()
    with (
        patch("web2gpt.parallel.compile.BACKEND", "aot_eager"),
        patch("web2gpt.parallel.compile.missing", lambda device: ""),
    ):
        engine = build(cell)
    whole = [local.parameter for name, local in engine.tensors.items() if name.startswith("h.")]
    kept = []

    def look(saved: Tensor) -> Tensor:
        places = {p.untyped_storage().data_ptr() for p in whole if p.numel()}
        if not isinstance(saved, torch.nn.Parameter):
            kept.extend([tuple(saved.shape)] * (saved.untyped_storage().data_ptr() in places))
        return saved

    tokens, _ = next(micro_batches(engine, 0))
    with torch.autograd.graph.saved_tensors_hooks(look, lambda saved: saved):
        engine.deepspeed(tokens)
    engine.close()
    return kept
