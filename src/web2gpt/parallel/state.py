"""Weights and optimizer state, read and written by parameter, whatever ZeRO made of them.

Invariant: what is read is this tensor rank's slice, whole over data ranks, in float32; written
back under any layout, it reads the same to the bit, but that zeros lose their sign where DeepSpeed
sums up what ranks hold. Reading is collective over data ranks, in the order of the calls.
"""

from collections.abc import Mapping

import torch
from deepspeed.utils import (
    safe_get_full_fp32_param,
    safe_get_full_optimizer_state,
    safe_set_full_optimizer_state,
    safe_set_local_optimizer_state,
)
from torch import Tensor

from web2gpt.parallel import deepspeed_internals as internals
from web2gpt.parallel.engine import Engine

WEIGHT = "weight"
Scaler = Mapping[str, float | int]


class EngineState:
    """The state inside an engine. Building it links, or creates, the optimizer's state."""

    def __init__(self, engine: Engine):
        self.engine = engine
        self._client = internals.client_optimizer(engine.optimizer)
        self._create_missing()
        internals.link_optimizer_state(engine.optimizer)

    def read(self, kind: str, name: str) -> Tensor:
        """``weight``, ``exp_avg`` or ``exp_avg_sq`` of a parameter, padding included."""
        parameter = self.engine.tensors[name].parameter
        if self._is_bare:
            value = parameter if kind == WEIGHT else self._client.state[parameter][kind]
        elif kind == WEIGHT:
            value = safe_get_full_fp32_param(parameter)
        else:
            value = safe_get_full_optimizer_state(parameter, kind)
        return value.detach().float()

    def write(self, kind: str, name: str, value: Tensor) -> None:
        """Put back a moment that ``read`` gave. (Weights are given when the engine is built.)"""
        parameter = self.engine.tensors[name].parameter
        grid = self.engine.grid
        if self._is_bare:
            self._client.state[parameter][kind].copy_(value)
        elif internals.is_partitioned(parameter):
            part = internals.partition_of(parameter, value, grid.data_rank, grid.layout.data)
            safe_set_local_optimizer_state(parameter, part, kind)
        else:
            safe_set_full_optimizer_state(parameter, value, kind)

    @property
    def optimizer_steps(self) -> int:
        """Steps that AdamW has applied."""
        return int(next(iter(self._client.state.values()))["step"])

    @optimizer_steps.setter
    def optimizer_steps(self, count: int) -> None:
        for state in self._client.state.values():
            state["step"].fill_(count)

    @property
    def step_counts(self) -> set[int]:
        """AdamW's counts of applied steps, one for each tensor that it steps: all should agree."""
        return {int(state["step"]) for state in self._client.state.values()}

    @property
    def loss_scaler(self) -> Scaler | None:
        """The dynamic loss scale's numbers under fp16; a fixed one is a setting, and no state."""
        if not self._has_dynamic_scale:
            return None
        scaler = internals.loss_scaler(self.engine.optimizer)
        return {name: getattr(scaler, name) for name in internals.SCALER_FIELDS}

    @loss_scaler.setter
    def loss_scaler(self, values: Scaler | None) -> None:
        if self._has_dynamic_scale:
            scaler = internals.loss_scaler(self.engine.optimizer)
            for name, value in (values or {}).items():
                setattr(scaler, name, value)

    @property
    def _has_dynamic_scale(self) -> bool:
        train = self.engine.setup.train
        return train.precision == "fp16" and not train.loss_scale

    @property
    def _is_bare(self) -> bool:
        """Whether the optimizer steps the parameters themselves (ZeRO 0)."""
        return self._client is self.engine.optimizer

    def _create_missing(self) -> None:
        """AdamW makes its state in its first step only: make it as it would."""
        for flat in internals.flat_parameters(self.engine.optimizer):
            if not self._client.state[flat]:
                fused = self._client.defaults.get("fused")
                device = flat.device if fused else torch.device("cpu")
                self._client.state[flat] = {
                    "step": torch.zeros((), dtype=torch.float32, device=device),
                    **{name: torch.zeros_like(flat) for name in internals.MOMENTS},
                }
