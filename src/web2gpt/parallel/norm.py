"""The gradient's norm, and clipping by it, where DeepSpeed has none that is right.

Every number of the model counts once: a copy of the tied embedding on a later stage does not, and
a tensor that tensor ranks replicate counts on the first of them. Padding rows have no gradient.
Summed in float64, so that the order does not show.
"""

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor

from web2gpt.parallel.grid import Grid

EPSILON = 1e-6  # as torch.nn.utils.clip_grad_norm_


def gradient_norm(parameters: Iterable[Tensor], grid: Grid) -> float:
    """L2 norm over all parameters of one replica, from ``.grad``. Collective."""
    total = torch.zeros((), dtype=torch.float64)
    for parameter in parameters:
        split = getattr(parameter, "tensor_model_parallel", False)
        if is_tied_copy(parameter) or (grid.tensor.rank > 0 and not split):
            continue
        if parameter.grad is not None:
            total += parameter.grad.double().square().sum().cpu()
    if grid.model_group is not None:
        total = total.to(_device(grid))
        dist.all_reduce(total, group=grid.model_group)
    return float(total.sqrt())


def clip_gradients(parameters: Iterable[Tensor], norm: float, largest: float) -> None:
    """Scale gradients down, in place, so that their norm is at most ``largest``; 0: leave them."""
    factor = largest / (norm + EPSILON)
    if largest and factor < 1:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(factor)


def is_tied_copy(parameter: Tensor) -> bool:
    """Whether an earlier pipeline stage holds this very parameter too."""
    return bool(getattr(parameter, "ds_pipe_replicated", False))


def _device(grid: Grid) -> torch.device:
    backend = dist.get_backend(grid.model_group)
    return torch.device("cuda" if backend == "nccl" else "cpu")
