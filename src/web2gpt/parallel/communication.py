"""All communication inside the model: what tensor-parallel ranks say to each other, differentiably.

Each operation is a pair, one for the forward and its adjoint for the backward pass (the f and g of
Shoeybi et al. 2019). Invariant: outside a split pair of layers an activation, and its gradient, is
the same, bit for bit, on all ranks of the group. With one rank every operation is the identity.

Under sequence parallelism (Korthikanti et al. 2022) a rank holds only its positions' part of the
activation there: a split region is entered by gathering positions and left by scattering the sums.
What a parameter outside of split regions gets from each rank's positions is then summed over ranks.

torch.compile does not look into the three operations between ranks: compiled code calls them by
name, as operators of this package, and finds the group by its name.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

# torch 2.13 renamed them.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


@dataclass(frozen=True)
class TensorGroup:
    """The ranks that share each layer; ``handle`` is None when there is only one.

    ``sequence``: outside of split regions each rank holds T / size positions of an activation.
    ``name``: by which compiled code finds ``handle``; see ``name_of``.
    """

    rank: int = 0
    size: int = 1
    handle: Any = None
    sequence: bool = False
    name: str = ""


_handles: dict[str, Any] = {}


def name_of(handle: Any) -> str:
    """A process group's name, empty without one; operators find it by this from now on."""
    if handle is None:
        return ""
    name = str(handle.group_name)
    _handles[name] = handle
    return name


def enter_split(x: Tensor, group: TensorGroup) -> Tensor:
    """Into a split region: identity forward; backward sums the ranks' gradients.

    Under sequence parallelism (B, T / t, C) -> (B, T, C); backward gives each rank its positions.
    """
    if group.size == 1:
        return x
    return _apply(_Gather if group.sequence else _Copy, x, group)


def leave_split(x: Tensor, group: TensorGroup) -> Tensor:
    """Out of a split region: sum of the ranks' partial results forward; identity backward.

    Under sequence parallelism (B, T, C) -> (B, T / t, C); backward gathers all positions.
    """
    if group.size == 1:
        return x
    return _apply(_Scatter if group.sequence else _Sum, x, group)


def share(parameter: Tensor, group: TensorGroup) -> Tensor:
    """A replicated parameter where it is used outside of split regions.

    Under sequence parallelism its gradient is summed over the ranks, each of which has that of its
    own positions; otherwise all have the same gradient, and there is nothing to do.
    """
    return _apply(_Copy, parameter, group) if group.size > 1 and group.sequence else parameter


def own_positions(x: Tensor, group: TensorGroup, dim: int) -> Tensor:
    """The part of ``x``, along the dimension of positions, that this rank holds outside of split
    regions: all of it without sequence parallelism. Communicates nothing."""
    if group.size == 1 or not group.sequence:
        return x
    return x.chunk(group.size, dim)[group.rank]


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
        return _summed(gradients[0], context.group), None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, group: TensorGroup) -> Tensor:
        return _summed(x, group)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, group: TensorGroup) -> Tensor:
        context.group = group
        return _gather_positions(x, group)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _scatter_positions(gradients[0], context.group), None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, group: TensorGroup) -> Tensor:
        context.group = group
        return _scatter_positions(x, group)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _gather_positions(gradients[0], context.group), None


def _summed(x: Tensor, group: TensorGroup) -> Tensor:
    return _sum_operator(x, group.name) if torch.compiler.is_compiling() else _sum(x, group.handle)


def _gather_positions(x: Tensor, group: TensorGroup) -> Tensor:  # (B, T / t, C) -> (B, T, C)
    if torch.compiler.is_compiling():
        parts = _gather_operator(x, group.name, group.size)
    else:
        parts = _gather(x, group.handle, group.size)
    return parts.transpose(0, 1).flatten(1, 2)


def _scatter_positions(x: Tensor, group: TensorGroup) -> Tensor:  # (B, T, C) -> (B, T / t, C)
    batch, positions, width = x.shape
    own_share = positions // group.size
    parts = x.reshape(batch, group.size, own_share, width).transpose(0, 1)  # (t, B, T / t, C)
    if torch.compiler.is_compiling():
        return _scatter_operator(parts, group.name)
    return _scatter(parts, group.handle)


def _sum(x: Tensor, handle: Any) -> Tensor:
    whole = x.contiguous().clone()
    dist.all_reduce(whole, group=handle)
    return whole


def _gather(x: Tensor, handle: Any, size: int) -> Tensor:  # (B, T / t, C) -> (t, B, T / t, C)
    parts = x.new_empty(size, *x.shape)
    _all_gather(parts.flatten(0, 1), x.contiguous(), group=handle)
    return parts


def _scatter(parts: Tensor, handle: Any) -> Tensor:  # (t, B, T / t, C) -> (B, T / t, C)
    parts = parts.contiguous()
    own = torch.empty_like(parts[0])
    _reduce_scatter(own, parts.flatten(0, 1), group=handle)
    return own


@torch.library.custom_op("web2gpt::sum_of_ranks", mutates_args=())
def _sum_operator(x: Tensor, group: str) -> Tensor:
    return _sum(x, _handles[group])


@torch.library.custom_op("web2gpt::gather_of_ranks", mutates_args=())
def _gather_operator(x: Tensor, group: str, size: int) -> Tensor:
    return _gather(x, _handles[group], size)


@torch.library.custom_op("web2gpt::scatter_to_ranks", mutates_args=())
def _scatter_operator(parts: Tensor, group: str) -> Tensor:
    return _scatter(parts, _handles[group])


# What comes out of each, as the compiler needs to know it.
_sum_operator.register_fake(lambda x, group: x.new_empty(x.shape))
_gather_operator.register_fake(lambda x, group, size: x.new_empty(size, *x.shape))
_scatter_operator.register_fake(lambda parts, group: parts.new_empty(parts.shape[1:]))


def _apply(function: type[torch.autograd.Function], x: Tensor, group: TensorGroup) -> Tensor:
    result: Tensor = function.apply(x, group)  # type: ignore[no-untyped-call]  # torch's
    return result
