"""What ranks do to look at the operators by which compiled code speaks to other ranks."""

from itertools import product

import torch
from cells import Cell
from torch import Tensor

from web2gpt.parallel import communication
from web2gpt.parallel.communication import TensorGroup
from web2gpt.parallel.grid import Grid

T, IN, OUT = 8, 6, 10


def check_operators(cell: Cell) -> list[str]:
    """What is wrong with the operators of this layout's tensor group: in their schema, in what the
    compiler is told of their results, or in the results, for inputs of any strides; also with a
    single sequence, where regrouping positions copies nothing."""
    group = Grid.of(cell.setup().layout).tensor
    wrong = []
    for (function, operator), batch in product(communication._OPERATORS.items(), (1, 2)):
        packed = _inputs(function.__name__, batch, group)
        for inputs in (packed, [_spread(x) for x in packed]):
            torch.library.opcheck(
                operator, (*inputs, group.name), test_utils=("test_schema", "test_faketensor")
            )
            found, expected = operator(*inputs, group.name), function(*packed, group)
            if not _equal(found, expected):
                wrong.append(f"{function.__name__} of strides {[x.stride() for x in inputs]}")
    return wrong


def _inputs(name: str, batch: int, group: TensorGroup) -> list[Tensor]:
    """Whole numbers, different on each rank, so that sums are exact in any order."""
    generator = torch.Generator().manual_seed(group.rank)
    shapes = {
        "_product_out": [(batch, T, IN), (OUT, IN)],
        "_gradients_in": [(batch, T, OUT), (batch, T, IN), (OUT, IN)],
    }.get(name, [(batch, T, IN)])
    return [torch.randint(-9, 9, shape, generator=generator).float() for shape in shapes]


def _spread(x: Tensor) -> Tensor:
    """The same numbers in memory with gaps and in another order."""
    room = x.new_zeros(*reversed(x.shape), 2)
    view = room[..., 0].permute(*reversed(range(x.dim())))
    view.copy_(x)
    return view


def _equal(found: Tensor | tuple[Tensor, ...], expected: Tensor | tuple[Tensor, ...]) -> bool:
    if isinstance(found, Tensor) and isinstance(expected, Tensor):
        return torch.equal(found, expected)
    return all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
