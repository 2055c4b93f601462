"""All communication inside the model: what tensor-parallel ranks say to each other, differentiably.

Each differentiable operation is a pair: one for the forward pass, its adjoint for the backward (the
f and g of Shoeybi et al. 2019). Invariant: outside a split pair of layers an activation, and its
gradient, is the same, bit for bit, on all ranks of the group. With one rank nothing is said.

Under sequence parallelism (Korthikanti et al. 2022) a rank holds only its positions' part of the
activation there: a split region is entered by gathering positions and left by scattering the sums.
Outside of split regions the gradient of a parameter comes from each rank's own positions, and is
summed over ranks. S is the number of positions that a rank holds there: T, or T / t.

A linear layer at the border of a split region is one operation with its communication: its product
is summed where it was written, without a copy; and in the backward pass the input's gradient is
being summed while the weight's is computed.

torch.compile does not look into what ranks say. Compiled code calls operators of this package,
which find the group by its name; each has a stand-in that tells the compiler shape and strides of
what comes out (tests/distributed/test_operators.py compares the two).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

# torch 2.13 renamed them.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


@dataclass(frozen=True)
class TensorGroup:
    """The ranks that share each layer; ``handle`` is None when there is only one.

    ``sequence``: outside of split regions each rank holds T / size positions of an activation.
    ``name``: by which compiled code finds the group.
    """

    rank: int = 0
    size: int = 1
    handle: Any = None
    sequence: bool = False
    name: str = ""

    @classmethod
    def of(cls, handle: Any, rank: int, size: int, *, sequence: bool) -> Self:
        """This process's group, which operators find by its name from now on; ``handle`` is None
        if the process is alone in it."""
        group = cls(rank, size, handle, sequence, str(handle.group_name) if handle else "")
        _groups[group.name] = group
        return group


_groups: dict[str, TensorGroup] = {}


def linear_in(x: Tensor, weight: Tensor, bias: Tensor | None, group: TensorGroup) -> Tensor:
    """A linear layer into a split region: weight (out / t, in); backward sums the ranks' gradients
    of ``x``.

    (B, T, in) -> (B, T, out / t). Under sequence parallelism ``x`` is (B, T / t, in), and backward
    gives each rank the gradient of its positions.
    """
    if group.size == 1:
        return F.linear(x, weight, bias)
    return _apply(_LinearIn, group, x, weight, bias)


def linear_out(x: Tensor, weight: Tensor, group: TensorGroup) -> Tensor:
    """A linear layer out of a split region: weight (out, in / t); the sum of the ranks' products.

    (B, T, in / t) -> (B, T, out), or (B, T / t, out) under sequence parallelism.
    """
    if group.size == 1:
        return F.linear(x, weight)
    return _apply(_LinearOut, group, x, weight)


def leave_split(x: Tensor, group: TensorGroup) -> Tensor:
    """Out of a split region: sum of the ranks' partial results forward; identity backward.

    Under sequence parallelism (B, T, C) -> (B, T / t, C); backward gathers all positions.
    """
    if group.size == 1:
        return x
    return _apply(_Scatter if group.sequence else _Sum, group, x)


def share(parameter: Tensor, group: TensorGroup) -> Tensor:
    """A replicated parameter where it is used outside of split regions.

    Under sequence parallelism its gradient is summed over the ranks, each of which has that of its
    own positions; otherwise all have the same gradient, and there is nothing to do.
    """
    return _apply(_Share, group, parameter) if group.size > 1 and group.sequence else parameter


def own_positions(x: Tensor, group: TensorGroup, dim: int) -> Tensor:
    """The part of ``x``, along the dimension of positions, that this rank holds outside of split
    regions: all of it without sequence parallelism. Communicates nothing."""
    if group.size == 1 or not group.sequence:
        return x
    return x.chunk(group.size, dim)[group.rank]


def gather_last(x: Tensor, group: TensorGroup) -> Tensor:
    """The ranks' slices side by side: (..., n / t) -> (..., n); not differentiable."""
    if group.size == 1:
        return x
    x = x.contiguous()
    parts = [torch.empty_like(x) for _ in range(group.size)]
    dist.all_gather(parts, x, group=group.handle)
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


class _LinearIn(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, group: TensorGroup, x: Tensor, weight: Tensor, bias: Tensor | None
    ) -> Tensor:
        context.group, context.has_bias = group, bias is not None
        whole = _gather_positions(x, group) if group.sequence else x
        context.save_for_backward(whole, weight)
        return F.linear(whole, weight, bias)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        whole, weight = context.saved_tensors
        of_x, of_weight = _call(_gradients_in, context.group, gradients[0], whole, weight)
        of_bias = gradients[0].flatten(0, -2).sum(0) if context.has_bias else None
        return None, of_x, of_weight, of_bias


class _LinearOut(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, group: TensorGroup, x: Tensor, weight: Tensor) -> Tensor:
        context.group = group
        context.save_for_backward(x, weight)
        result: Tensor = _call(_product_out, group, x, weight)
        return result

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = context.saved_tensors
        sequence = context.group.sequence
        whole = _gather_positions(gradients[0], context.group) if sequence else gradients[0]
        return None, whole @ weight, _gradient_of_weight(whole, x)


class _Share(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, group: TensorGroup, x: Tensor) -> Tensor:
        context.group = group
        return x.view_as(x)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, _call(_sum, context.group, gradients[0])


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, group: TensorGroup, x: Tensor) -> Tensor:
        result: Tensor = _call(_sum, group, x)
        return result

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, gradients[0]


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, group: TensorGroup, x: Tensor) -> Tensor:
        context.group = group
        result: Tensor = _call(_scatter, group, x)
        return result

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, _gather_positions(gradients[0], context.group)


def _gather_positions(x: Tensor, group: TensorGroup) -> Tensor:  # (B, T / t, C) -> (B, T, C)
    parts: Tensor = _call(_gather, group, x)
    return parts.transpose(0, 1).flatten(1, 2)


def _gradient_of_weight(gradient: Tensor, x: Tensor) -> Tensor:  # (B, T, out), (B, T, in)
    return gradient.flatten(0, -2).t() @ x.flatten(0, -2)


# What ranks say. Each is called as it stands, or, by compiled code, as an operator of its name.


def _sum(x: Tensor, group: TensorGroup) -> Tensor:
    whole = x.clone(memory_format=torch.contiguous_format)  # memory is what ranks sum
    dist.all_reduce(whole, group=group.handle)
    return whole


def _gather(x: Tensor, group: TensorGroup) -> Tensor:  # (B, T / t, C) -> (t, B, T / t, C)
    parts = x.new_empty(group.size, *x.shape)
    _all_gather(parts.flatten(0, 1), x.contiguous(), group=group.handle)
    return parts


def _scatter(x: Tensor, group: TensorGroup) -> Tensor:  # (B, T, C) -> (B, T / t, C)
    own, sending = _begin_scatter(x, group)
    sending.wait()
    return own


def _begin_scatter(x: Tensor, group: TensorGroup) -> tuple[Tensor, Any]:
    """The sum over ranks of this one's positions, complete once what is returned with it has been
    waited for."""
    batch, positions, width = x.shape
    parts = x.reshape(batch, group.size, positions // group.size, width).transpose(0, 1)
    parts = parts.contiguous()  # (t, B, T / t, C)
    own = torch.empty_like(parts[0])  # (B, T / t, C)
    return own, _reduce_scatter(own, parts.flatten(0, 1), group=group.handle, async_op=True)


def _product_out(x: Tensor, weight: Tensor, group: TensorGroup) -> Tensor:  # -> (B, S, out)
    partial = x @ weight.t()  # (B, T, out), in memory of its own: it is summed in place
    if group.sequence:
        return _scatter(partial, group)
    dist.all_reduce(partial, group=group.handle)
    return partial


def _gradients_in(
    gradient: Tensor, x: Tensor, weight: Tensor, group: TensorGroup
) -> tuple[Tensor, Tensor]:
    of_x = gradient @ weight  # (B, T, in), this rank's share of the sum, in memory of its own
    if group.sequence:
        of_x, sending = _begin_scatter(of_x, group)
    else:
        sending = dist.all_reduce(of_x, group=group.handle, async_op=True)
    of_weight = _gradient_of_weight(gradient, x)
    sending.wait()
    return of_x, of_weight  # (B, S, in), (out / t, in)


@torch.library.custom_op("web2gpt::sum", mutates_args=())
def _sum_operator(x: Tensor, group: str) -> Tensor:
    return _sum(x, _groups[group])


@torch.library.custom_op("web2gpt::gather", mutates_args=())
def _gather_operator(x: Tensor, group: str) -> Tensor:
    return _gather(x, _groups[group])


@torch.library.custom_op("web2gpt::scatter", mutates_args=())
def _scatter_operator(x: Tensor, group: str) -> Tensor:
    return _scatter(x, _groups[group])


@torch.library.custom_op("web2gpt::product_out", mutates_args=())
def _product_out_operator(x: Tensor, weight: Tensor, group: str) -> Tensor:
    return _product_out(x, weight, _groups[group])


@torch.library.custom_op("web2gpt::gradients_in", mutates_args=())
def _gradients_in_operator(
    gradient: Tensor, x: Tensor, weight: Tensor, group: str
) -> tuple[Tensor, Tensor]:
    return _gradients_in(gradient, x, weight, _groups[group])


# What comes out of each, as the compiler needs to know it.


@_sum_operator.register_fake
def _(x: Tensor, group: str) -> Tensor:
    return x.new_empty(x.shape)


@_gather_operator.register_fake
def _(x: Tensor, group: str) -> Tensor:
    return x.new_empty(_groups[group].size, *x.shape)


@_scatter_operator.register_fake
def _(x: Tensor, group: str) -> Tensor:
    return _like_own_positions(x, _groups[group])


@_product_out_operator.register_fake
def _(x: Tensor, weight: Tensor, group: str) -> Tensor:
    return _like_sum(x.new_empty(*x.shape[:-1], weight.size(0)), _groups[group])


@_gradients_in_operator.register_fake
def _(gradient: Tensor, x: Tensor, weight: Tensor, group: str) -> tuple[Tensor, Tensor]:
    return _like_sum(x, _groups[group]), weight.new_empty(weight.shape)


def _like_sum(x: Tensor, group: TensorGroup) -> Tensor:  # (B, T, C) -> (B, S, C)
    return _like_own_positions(x, group) if group.sequence else x.new_empty(x.shape)


def _like_own_positions(x: Tensor, group: TensorGroup) -> Tensor:  # (B, T, C) -> (B, T / t, C)
    batch, positions, width = x.shape
    return x.new_empty(batch, positions // group.size, width)


_OPERATORS: dict[Callable[..., Any], Any] = {
    _sum: _sum_operator,
    _gather: _gather_operator,
    _scatter: _scatter_operator,
    _product_out: _product_out_operator,
    _gradients_in: _gradients_in_operator,
}


def _call(function: Callable[..., Any], group: TensorGroup, *tensors: Tensor) -> Any:
    if torch.compiler.is_compiling():
        return _OPERATORS[function](*tensors, group.name)
    return function(*tensors, group)


def _apply(function: type[torch.autograd.Function], group: TensorGroup, *inputs: Any) -> Tensor:
    result: Tensor = function.apply(group, *inputs)  # type: ignore[no-untyped-call]  # torch's
    return result
