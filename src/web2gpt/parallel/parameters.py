"""This rank's parameters under their global names, and their initial or loaded values.

Whatever modules hold them, and whichever stage they are on, parameters are known by the names of
``model.gpt2``; how each is cut stands in ``parallel.split``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from web2gpt.parallel.split import Slice, cut, is_split, slice_of

WholeTensor = Callable[[str, tuple[int, ...]], Tensor]
"""Gives the whole float32 tensor of a parameter, from its global name and shape."""


@dataclass(frozen=True)
class LocalTensor:
    """A parameter on this rank: the slice that it holds of the whole of global ``shape``."""

    parameter: nn.Parameter
    slice: Slice
    shape: tuple[int, ...]


def local_tensors(
    parameters: Iterable[tuple[str, nn.Parameter]],
    shapes: Mapping[str, tuple[int, ...]],
    *,
    tensor: int,
    rank: int,
    padded_vocab: int,
) -> dict[str, LocalTensor]:
    """Pair parameters, given with global names, with their slices; mark the split ones.

    The mark, ``tensor_model_parallel``, is how DeepSpeed knows which of them to count on every
    rank in the gradient's norm.
    """
    found = {}
    for name, parameter in parameters:
        part = slice_of(name, shapes[name], tensor=tensor, rank=rank, padded_vocab=padded_vocab)
        if tuple(parameter.shape) != part.shape:
            raise ValueError(f"{name}: {tuple(parameter.shape)} where {part.shape} should be")
        split = tensor > 1 and is_split(name)
        parameter.tensor_model_parallel = split  # type: ignore[attr-defined]  # DeepSpeed's mark
        found[name] = LocalTensor(parameter, part, shapes[name])
    return found


@torch.no_grad()
def fill(
    tensors: Mapping[str, LocalTensor],
    whole: WholeTensor,
    put: Callable[[nn.Parameter, Tensor], None],
) -> None:
    """Give each parameter its slice of the whole tensor, one at a time, by ``put``."""
    for name, local in tensors.items():
        put(local.parameter, cut(whole(name, local.shape), local.slice))


def decay_groups(
    parameters: Iterable[nn.Parameter], weight_decay: float
) -> list[dict[str, object]]:
    """Two groups for the optimizer: matrices and embeddings are decayed, vectors are not.

    Raises ``ValueError`` if one of them is empty: ranks that differ in their number of groups
    would wait for each other for ever.
    """
    kept = [parameter for parameter in parameters if parameter.requires_grad]
    matrices = [parameter for parameter in kept if parameter.dim() >= 2]
    vectors = [parameter for parameter in kept if parameter.dim() < 2]
    if not matrices or not vectors:
        raise ValueError("a stage without both matrices and vectors; give it a block")
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
