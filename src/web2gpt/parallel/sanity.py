"""Checks that a running trainer makes of itself, on demand or every so many steps.

Whatever several ranks hold of one thing must be the same to the bit:

- data ranks: the weights that the forward pass reads (under ZeRO 3 nothing is held twice);
- tensor ranks: weights and moments of tensors that are not split;
- first and last pipeline stage: weights and moments of the token embedding.

And on each rank: AdamW has counted the steps that the run has; the forward pass reads the
optimizer's float32 weights, rounded; all values are finite; every parameter has had a gradient.

Ranks compare digests: a few bytes a tensor travel. A digest is the sum of a tensor's bits times odd
numbers, modulo 2**64, so that a single difference always shows. The idea is nanotron's.
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from web2gpt.errors import Web2gptError
from web2gpt.parallel import deepspeed_internals as internals
from web2gpt.parallel.engine import Engine
from web2gpt.parallel.parameters import LocalTensor
from web2gpt.parallel.split import is_split, without_padding
from web2gpt.parallel.state import WEIGHT, EngineState

KINDS = (WEIGHT, *internals.MOMENTS)
TIED = "wte.weight"
CHUNK = 1 << 22  # numbers digested at a time
SHOWN = 5  # faults that a message names


class DriftError(Web2gptError):
    """Copies that must be equal are not, or the optimizer's state is not what it should be."""


def check(engine: Engine, step: int, optimizer_steps: int) -> None:
    """Raise ``DriftError``, on every rank, if anything is wrong after ``step``. Collective."""
    found = faults(engine, optimizer_steps)
    if found:
        more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise DriftError(
            f"train: after step {step}: {'; '.join(found[:SHOWN])}{more}. Carry on from a "
            "checkpoint that was checked; if it comes again under parallel.data: 1 too, the "
            "machine is at fault."
        )


def faults(engine: Engine, optimizer_steps: int) -> list[str]:
    """All that is wrong, the same list on every rank; empty if all is well. Collective.

    ``optimizer_steps``: how many steps AdamW should have applied.
    """
    state, grid = EngineState(engine), engine.grid
    own: list[str] = []
    if state.step_counts != {optimizer_steps}:
        counts = ", ".join(map(str, sorted(state.step_counts)))
        own.append(f"AdamW has counted {counts} steps on rank {grid.rank}, not {optimizer_steps}")
    replicas: dict[str, Tensor] = {}
    shared: dict[str, Tensor] = {}
    tied: dict[str, Tensor] = {}
    for name, local in engine.tensors.items():
        for kind in KINDS:
            value = state.read(kind, name)
            wrong = _faults_of(kind, value, local, had_steps=optimizer_steps > 0)
            own += [f"{fault.format(name=name)} on rank {grid.rank}" for fault in wrong]
            if not is_split(name):
                shared[f"{kind} of {name}"] = digest(value)
            if name == TIED:
                tied[f"{kind} of {name}"] = digest(value)
        if not internals.is_partitioned(local.parameter):
            replicas[name] = digest(local.parameter)
    own += _differences("data ranks", replicas, grid.data_group)
    own += _differences("tensor ranks", shared, grid.tensor.handle)
    own += _differences("the first and the last stage", tied, grid.tied_group)
    everyone: list[list[str]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(everyone, own)
    return list(dict.fromkeys(fault for rank in everyone for fault in rank))


def digest(tensor: Tensor) -> Tensor:
    """64 bits, on the tensor's device, that tell whether two tensors hold the same bits."""
    width = torch.int32 if tensor.element_size() == 4 else torch.int16
    bits = tensor.detach().contiguous().view(-1).view(width)
    total = torch.zeros((), dtype=torch.int64, device=bits.device)
    for start in range(0, len(bits), CHUNK):
        chunk = bits[start : start + CHUNK].long()
        places = torch.arange(start, start + len(chunk), device=bits.device)
        total += (chunk * (2 * places + 1)).sum()
    return total


def _faults_of(kind: str, value: Tensor, local: LocalTensor, *, had_steps: bool) -> Iterator[str]:
    """What is wrong with one tensor, ``{name}``, on this rank."""
    true = without_padding(value, local.slice)
    if not torch.isfinite(value).all():
        yield f"{kind} of {{name}} holds NaN or infinity"
    if kind == "exp_avg_sq" and had_steps and true.numel() and not true.any():
        yield "{name} has had no gradient"
    if kind == WEIGHT and not internals.is_partitioned(local.parameter):
        read = local.parameter.detach()
        if not torch.equal(read, value.to(read.dtype)):
            yield "the forward pass reads another {name} than the optimizer holds"


def _differences(who: str, digests: dict[str, Tensor], group: Any) -> Iterator[str]:
    """Names of tensors that are not the same on all ranks of ``group``. Collective over it."""
    if group is None or not digests:
        return
    least = torch.stack(list(digests.values()))
    largest = least.clone()
    dist.all_reduce(least, op=dist.ReduceOp.MIN, group=group)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=group)
    for label, differs in zip(digests, (least != largest).tolist(), strict=True):
        if differs:
            yield f"{label} is not the same on {who}"
