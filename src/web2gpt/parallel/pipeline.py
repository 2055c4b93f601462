"""GPT-2 as a row of layers, dealt out to pipeline stages by cost.

Row: token embedding, positions, blocks, final norm, head. The head is the token embedding again
(tied): the first and the last stage each hold a copy, which start equal and stay equal because
the gradients of both are summed.

Cost, in blocks: the embedding costs nothing, and the head V / (12 C (1 + T / 6C)), the ratio of
their matrix products (Narayanan et al. 2021): about 3.5 for GPT-2 345M.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from deepspeed.pipe import LayerSpec, TiedLayerSpec
from torch import Tensor, nn

from web2gpt.config.training import Model
from web2gpt.model.gpt2 import Block, Embedding
from web2gpt.parallel.communication import TensorGroup
from web2gpt.parallel.deepspeed_internals import StagedPipeline
from web2gpt.parallel.dropout import Streams
from web2gpt.parallel.recompute import prepare_input
from web2gpt.parallel.tensor import (
    PositionEmbedding,
    VocabularyEmbedding,
    split_block,
    split_embedding,
    split_norm,
)

Loss = Callable[[Tensor, Tensor], Tensor]

TIED = "wte"


class Positions(nn.Module):
    """Adds the position embedding: a layer of its own, so that it is not tied to the head."""

    def __init__(self, embedding: Embedding, group: TensorGroup):
        super().__init__()
        self.wpe = PositionEmbedding(embedding.wpe, group)
        self.drop = embedding.drop
        self.shares = group.size if group.sequence else 1

    def forward(self, x: Tensor) -> Tensor:  # (B, S, C) -> (B, S, C)
        positions = torch.arange(x.size(1) * self.shares, device=x.device)  # (T,)
        return self.drop(x + self.wpe(positions))


def blocks_of_stages(n_layer: int, stages: int, head: float) -> list[int]:
    """How many blocks each stage gets so that the slowest is as fast as can be.

    ``head``: cost of the head in blocks. Every stage has a block: one without would lack a
    parameter group, see ``decay_groups``.
    """
    if stages == 1:
        return [n_layer]

    def slowest(last: int) -> float:
        return max(-(-(n_layer - last) // (stages - 1)), last + head)

    last = min(range(1, n_layer - stages + 2), key=lambda count: (slowest(count), count))
    each, more = divmod(n_layer - last, stages - 1)
    # Later stages hold fewer micro-batches at a time: they take what does not divide.
    return [each + (stage >= stages - 1 - more) for stage in range(stages - 1)] + [last]


def head_cost(model: Model, padded_vocab: int) -> float:
    """The head's cost in blocks."""
    width = model.n_embd
    return padded_vocab / (12 * width * (1 + model.n_positions / (6 * width)))


def stage_bounds(model: Model, stages: int, padded_vocab: int) -> list[int]:
    """First layer of each stage in the row of n_layer + 4 layers, and the row's end."""
    blocks = blocks_of_stages(model.n_layer, stages, head_cost(model, padded_vocab))
    bounds = [0]
    for stage, count in enumerate(blocks):
        bounds.append(bounds[-1] + count + (2 if stage == 0 else 0))
    bounds[-1] += 2
    return bounds


def build_pipeline(
    model: Model,
    padded_vocab: int,
    *,
    group: TensorGroup,
    topology: Any,
    device: torch.device,
    loss: Loss,
    prepare: Callable[[Block, int], Block],
    streams: Streams | None,
) -> StagedPipeline:
    """This rank's stage; parameters have no values yet. Collective.

    ``prepare`` is applied to each block, with its number, once it is split.
    """

    def wte() -> nn.Module:
        return split_embedding(Embedding(model, padded_vocab), padded_vocab, group)

    def positions() -> nn.Module:
        layer = Positions(Embedding(model, padded_vocab), group)
        prepare_input(layer, streams)
        return layer

    def block(number: int) -> nn.Module:
        return prepare(split_block(Block(model), group), number)

    def norm() -> nn.Module:
        return split_norm(nn.LayerNorm(model.n_embd, eps=model.layer_norm_epsilon), group)

    def built(factory: Callable[[], nn.Module]) -> type[nn.Module]:
        return _class_of(factory, device)

    row: Sequence[Any] = [
        TiedLayerSpec(TIED, built(wte)),
        LayerSpec(built(positions)),
        *[LayerSpec(built(partial(block, number))) for number in range(model.n_layer)],
        LayerSpec(built(norm)),
        TiedLayerSpec(TIED, built(wte), forward_fn=VocabularyEmbedding.logits),
    ]
    bounds = stage_bounds(model, topology.get_dim("pipe"), padded_vocab)
    begin = streams.next_micro_batch if streams else None
    return StagedPipeline(row, bounds, begin, topology=topology, loss_fn=loss)


def pipeline_name(name: str, n_layer: int) -> str:
    """The global name of a pipeline's parameter: ``2.attn.c_attn.bias`` is ``h.0.attn.…``."""
    if name.startswith("tied_modules."):
        return name.removeprefix("tied_modules.")
    index, _, rest = name.partition(".")
    if int(index) == n_layer + 2:
        return f"ln_f.{rest}"
    return rest if int(index) == 1 else f"h.{int(index) - 2}.{rest}"


def _class_of(factory: Callable[[], nn.Module], device: torch.device) -> type[nn.Module]:
    """DeepSpeed builds layers from classes: one whose instances come from ``factory``.

    They are made without values, on ``device``.
    """

    class Built(nn.Module):
        def __new__(cls) -> Any:
            with torch.device("meta"):
                layer = factory()
            return layer.to_empty(device=device)

    return Built
