"""Faults planted in a rank, to see that the tests and the trainer's own checks find them."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
import torch.nn.functional as F
from cells import VOCAB
from torch import Tensor

from web2gpt.config.training import Optimizer, Parallel, Train
from web2gpt.parallel import deepspeed_config
from web2gpt.parallel import engine as engine_module
from web2gpt.parallel import tensor as tensor_layers
from web2gpt.parallel.communication import TensorGroup, leave_split
from web2gpt.parallel.cross_entropy import vocabulary_cross_entropy
from web2gpt.parallel.deepspeed_internals import put_weight
from web2gpt.parallel.dropout import Key, Streams
from web2gpt.parallel.engine import Engine
from web2gpt.parallel.state import EngineState


@contextmanager
def fault_in_the_model(kind: str) -> Iterator[None]:
    """While an engine is built and trained. ``""`` plants nothing."""
    target, names = FAULTS[kind] if kind else (None, {})
    with patch.multiple(target, **names) if kind else nullcontext():
        yield


def _add_bias_on_every_rank(self: Any, x: Tensor) -> Tensor:
    return leave_split(F.linear(x, self.weight, self.bias), self.group)


def _with_padding(
    logits: Tensor, targets: Tensor, vocab_size: int, group: TensorGroup, *rest: Any
) -> Tensor:
    assert vocab_size == VOCAB
    return vocabulary_cross_entropy(logits, targets, vocab_size + 1, group, *rest)


def _first_positions(x: Tensor, group: TensorGroup, dim: int) -> Tensor:
    return x.chunk(group.size, dim)[0]


IN_16_BITS = {"fp32": "fp32", "bf16": "bf16", "fp16": "fp16"}
_seed = Streams.seed


def _seed_by_the_latest(self: Streams, key: Key, layer: int) -> None:
    _seed(self, self.key, layer)


def _with_own_clipping(train: Train, layout: Parallel, optimizer: Optimizer) -> dict[str, Any]:
    config = deepspeed_config.deepspeed_config(train, layout, optimizer)
    return config | {"gradient_clipping": optimizer.grad_clip}


FAULTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "summed bias": (tensor_layers.RowLinear, {"forward": _add_bias_on_every_rank}),
    "padded row in the softmax": (engine_module, {"vocabulary_cross_entropy": _with_padding}),
    "partial gradients of layer norms": (tensor_layers, {"share": lambda tensor, group: tensor}),
    "wrong positions": (tensor_layers, {"own_positions": _first_positions}),
    "sums in 16 bits": (deepspeed_config, {"ACCUMULATION": IN_16_BITS}),
    "masks of another micro-batch": (Streams, {"seed": _seed_by_the_latest}),
    "DeepSpeed's own clipping": (
        engine_module,
        {"deepspeed_config": _with_own_clipping, "clip_gradients": lambda *_: None},
    ),
}


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
    if kind == "weight" and engine.setup.layout.zero == 0:
        local.parameter.data.copy_(value)
    elif kind == "weight":
        put_weight(local.parameter, value, engine.grid.data_rank, engine.setup.layout.data)
    elif kind != "copy":
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


@contextmanager
def gradient_is_lost(engine: Engine, name: str) -> Iterator[None]:
    """A parameter's gradient is 0 on every rank that holds it."""
    local = engine.tensors.get(name)
    handle = local.parameter.register_hook(torch.zeros_like) if local else None
    yield
    if handle:
        handle.remove()
