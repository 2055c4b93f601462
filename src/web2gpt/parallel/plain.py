"""GPT-2 with its layers split over tensor-parallel ranks, without a pipeline."""

from collections.abc import Callable

import torch

from web2gpt.config.training import Model
from web2gpt.model.gpt2 import GPT2, Block, global_name
from web2gpt.parallel.communication import TensorGroup
from web2gpt.parallel.dropout import Streams
from web2gpt.parallel.recompute import prepare_input
from web2gpt.parallel.tensor import split_block, split_embedding, split_head

plain_name = global_name
"""The global name of a parameter of the split model: the same as in the whole one."""


def build_plain(
    model: Model,
    padded_vocab: int,
    *,
    group: TensorGroup,
    device: torch.device,
    prepare: Callable[[Block, int], Block],
    streams: Streams | None,
) -> GPT2:
    """The model of this tensor rank; parameters have no values yet.

    It gives this rank's columns of the logits. ``prepare`` is applied to each block, with its
    number.
    """
    with torch.device("meta"):
        gpt = GPT2(model, padded_vocab)
        wte = split_embedding(gpt.embedding, padded_vocab, group)
        gpt.head = split_head(gpt.head, wte)  # type: ignore[assignment]  # same call, split columns
        prepare_input(gpt.embedding, streams)
        for number, block in enumerate(gpt.h):
            prepare(split_block(block, group), number)  # type: ignore[arg-type]  # ModuleList holds Modules
    return gpt.to_empty(device=device)
