"""All communication inside the model: what tensor-parallel ranks say to each other, differentiably.

Each operation is a pair, one for the forward and its adjoint for the backward pass (the f and g of
Shoeybi et al. 2019). Invariant: outside a split pair of layers an activation, and its gradient, is
the same, bit for bit, on all ranks of the group. With one rank every operation is the identity.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class TensorGroup:
    """The ranks that share each layer; ``handle`` is None when there is only one."""

    rank: int = 0
    size: int = 1
    handle: Any = None


def copy_to_ranks(x: Tensor, group: TensorGroup) -> Tensor:
    """Enter a split region: identity forward; backward sums the ranks' gradients."""
    return x if group.size == 1 else _apply(_Copy, x, group)


def sum_over_ranks(x: Tensor, group: TensorGroup) -> Tensor:
    """Leave a split region: sum of the ranks' partial results forward; identity backward."""
    return x if group.size == 1 else _apply(_Sum, x, group)


def gather_last(x: Tensor, group: TensorGroup) -> Tensor:
    """The ranks' slices side by side along the last dimension; not differentiable."""
    if group.size == 1:
        return x
    parts = [torch.empty_like(x) for _ in range(group.size)]
    dist.all_gather(parts, x.contiguous(), group=group.handle)
    return torch.cat(parts, dim=-1)


def all_sum(x: Tensor, group: TensorGroup) -> Tensor:
    """Sum over the ranks, in place; not differentiable."""
    if group.size > 1:
        dist.all_reduce(x, group=group.handle)
    return x


def all_max(x: Tensor, group: TensorGroup) -> Tensor:
    """Largest value over the ranks, in place; not differentiable."""
    if group.size > 1:
        dist.all_reduce(x, op=dist.ReduceOp.MAX, group=group.handle)
    return x


class _Copy(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, group: TensorGroup) -> Tensor:
        context.group = group
        return x.view_as(x)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return all_sum(gradients[0].contiguous().clone(), context.group), None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, group: TensorGroup) -> Tensor:
        return all_sum(x.contiguous().clone(), group)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


def _apply(function: type[torch.autograd.Function], x: Tensor, group: TensorGroup) -> Tensor:
    result: Tensor = function.apply(x, group)  # type: ignore[no-untyped-call]
    return result
