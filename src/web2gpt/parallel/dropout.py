"""Dropout's random streams: functions of positions in the run, not of what was drawn before.

A layer's masks follow from the run's seed, the step, the number of the micro-batch in the global
batch, and the layer; inside attention, whose heads are split, from the tensor rank too. So they are
the same after a resume and when activations are recomputed, and equal on all tensor ranks where the
activation is. Under sequence parallelism no activation is, and all streams are a rank's own. (Which
masks a sample gets does depend on the layout's micro-batches.)

Generators are seeded anew for each layer; without dropout nothing is wrapped at all.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor, nn

from web2gpt.config.training import Model
from web2gpt.model.gpt2 import Block
from web2gpt.parallel.grid import Grid

Key = tuple[int, int]
"""Step and micro-batch."""


class Streams:
    """The streams of one rank. ``begin_step``, then ``next_micro_batch`` before each forward."""

    def __init__(self, seed: int, grid: Grid, device: torch.device):
        self._seed, self._tensor_rank = seed, grid.tensor.rank
        self.splits = grid.tensor.size > 1  # whether ranks share heads
        # 0: the stream that all tensor ranks share; 1 and up are for their own inside attention.
        self._outer = -1 - grid.tensor.rank if grid.tensor.sequence else 0
        self._data_rank, self._data = grid.data_rank, grid.layout.data
        self._on_gpu = device.type == "cuda"
        self._step = 0
        self._micro_batch = -1
        self._active: Key = (0, 0)

    def begin_step(self, step: int) -> None:
        self._step, self._micro_batch = step, -1

    def next_micro_batch(self) -> None:
        self._micro_batch += 1

    @property
    def key(self) -> Key:
        """Of the micro-batch that is going forward now."""
        return self._step, self._micro_batch * self._data + self._data_rank

    @property
    def active(self) -> Key:
        """Of the layer that is being computed or recomputed."""
        return self._active

    def seed(self, key: Key, layer: int) -> None:
        """Start a layer's stream, the same on all tensor ranks that hold the same positions."""
        self._active = key
        torch.manual_seed(self._number(key, layer, self._outer))

    @contextmanager
    def split_region(self, layer: int) -> Iterator[None]:
        """A stream of this tensor rank's own; the layer's goes on after it."""
        devices = [torch.cuda.current_device()] if self._on_gpu else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(self._number(self._active, layer, 1 + self._tensor_rank))
            yield

    def _number(self, key: Key, layer: int, stream: int) -> int:
        text = repr((self._seed, *key, layer, stream)).encode()
        return int.from_bytes(blake2b(text, digest_size=7).digest(), "little")


def seed_layer(module: nn.Module, streams: Streams, layer: int) -> Callable[..., Any]:
    """A forward of ``module`` that takes the key first and starts the layer's stream."""
    forward: Callable[..., Any] = module.forward

    def seeded(key: Key, *inputs: Tensor) -> Any:
        if module.training:
            streams.seed(key, layer)
        return forward(*inputs)

    return seeded


def seed_core(block: Block, streams: Streams, layer: int) -> None:
    """Give the attention's core, whose heads are split, a stream of this rank's own."""
    core = block.attn.core
    forward: Callable[..., Any] = core.forward

    def seeded(*inputs: Tensor) -> Any:
        if not core.training:
            return forward(*inputs)
        with streams.split_region(layer):
            return forward(*inputs)

    core.forward = seeded  # type: ignore[assignment, method-assign]  # wrapped, once


def has_dropout(model: Model) -> bool:
    """Whether any of the model's dropouts is at work."""
    return bool(model.embd_pdrop or model.attn_pdrop or model.resid_pdrop)
