"""Faults planted in a rank, to see that the tests and the trainer's own checks find them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
import torch.nn.functional as F
from cells import VOCAB
from torch import Tensor

from web2gpt.parallel import engine as engine_module
from web2gpt.parallel import tensor as tensor_layers
from web2gpt.parallel.communication import TensorGroup, leave_split
from web2gpt.parallel.cross_entropy import vocabulary_cross_entropy
from web2gpt.parallel.engine import Engine
from web2gpt.parallel.state import EngineState


@contextmanager
def fault_in_the_model(kind: str) -> Iterator[None]:
    """While an engine is built and trained. ``""`` plants nothing."""
    with _patch(kind) if kind else patch.dict({}):
        yield


def _patch(kind: str) -> Any:
    match kind:
        case "summed bias":
            return patch.object(tensor_layers.RowLinear, "forward", _add_bias_on_every_rank)
        case "padded row in the softmax":
            return patch.object(engine_module, "vocabulary_cross_entropy", _with_padding)
        case "partial gradients of layer norms":
            return patch.object(tensor_layers, "share", lambda parameter, group: parameter)
        case "wrong positions":
            return patch.object(tensor_layers, "own_positions", _first_positions)
    raise ValueError(kind)


def _add_bias_on_every_rank(self: Any, x: Tensor) -> Tensor:
    return leave_split(F.linear(x, self.weight, self.bias), self.group)


def _with_padding(
    logits: Tensor, targets: Tensor, vocab_size: int, group: TensorGroup, *rest: Any
) -> Tensor:
    assert vocab_size == VOCAB
    return vocabulary_cross_entropy(logits, targets, vocab_size + 1, group, *rest)


def _first_positions(x: Tensor, group: TensorGroup, dim: int) -> Tensor:
    return x.chunk(group.size, dim)[0]


def untie(engine: Engine) -> None:
    """Gradients of the tied embedding are not summed over the stages any more."""
    engine.deepspeed.module.get_tied_weights_and_groups = list


def drift(engine: Engine, kind: str, name: str) -> None:
    """One bit of one value of a tensor changes, on the last rank only.

    ``kind`` is ``weight``, a moment, or ``copy``: the weight that the forward pass reads.
    """
    state = EngineState(engine)
    local = engine.tensors.get(name)
    if local is None:
        return
    value = local.parameter.detach() if kind == "copy" else state.read(kind, name).clone()
    if dist.get_rank() == dist.get_world_size() - 1:
        value.view(torch.int32).view(-1)[0] ^= 1
    if kind != "copy":
        state.write(kind, name, value)


@contextmanager
def gradient_becomes(engine: Engine, value: float) -> Iterator[None]:
    """One number of one gradient is ``value`` in each backward pass, on one rank."""
    name = next(name for name in engine.tensors if name.endswith("ln_1.bias"))
    parameter = engine.tensors[name].parameter

    def spoil(gradient: Tensor) -> Tensor:
        spoilt = gradient.clone()
        spoilt[0] = value
        return spoilt

    if engine.grid.rank == 0:
        handle = parameter.register_hook(spoil)
        yield
        handle.remove()
    else:
        yield
