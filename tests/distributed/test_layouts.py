"""The same model under every layout: losses and norms as a plain torch loop has them."""

from typing import Any

import cells
import pytest
from cells import Cell
from pool import Worlds

RELATIVE = 1e-6

LAYOUTS = [
    *(Cell(zero=zero) for zero in (0, 1, 2, 3)),
    Cell(micro=8),
    Cell(recompute="selective"),
    Cell(offload=True),
    *(Cell(tensor=2, zero=zero) for zero in (0, 1, 3)),
    Cell(tensor=2, recompute="full", micro=4),
    *(Cell(data=2, zero=zero) for zero in (0, 1, 2, 3)),
    *(Cell(pipeline=2, zero=zero) for zero in (0, 1)),
    Cell(pipeline=2, recompute="full", micro=1),
    Cell(tensor=2, pipeline=2, zero=0),
    Cell(tensor=2, pipeline=2),
    Cell(tensor=2, data=2, zero=2),
    Cell(tensor=4),
    Cell(pipeline=4, micro=1),
]

LOW_PRECISION = [
    Cell(precision="bf16", zero=1),
    pytest.param(Cell(precision="bf16", zero=2), marks=pytest.mark.long),
    pytest.param(Cell(precision="bf16", zero=3), marks=pytest.mark.long),
    Cell(precision="bf16", offload=True),
    Cell(precision="bf16", tensor=2, zero=2),
    Cell(precision="bf16", pipeline=2),
    pytest.param(Cell(precision="bf16", tensor=2, pipeline=2), marks=pytest.mark.long),
]
LOSS_BF16, NORM_BF16 = 3e-4, 3e-2


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    return cells.train_plainly()


@pytest.mark.parametrize("cell", LAYOUTS, ids=str)
def test_losses_and_norms_are_those_of_a_plain_loop(
    worlds: Worlds, truth: dict[str, Any], cell: Cell
) -> None:
    results = worlds[cell.size].run(cells.train, cell)
    assert all(result == results[0] for result in results), "ranks tell different stories"
    for key in ("losses", "norms", "valid"):
        assert results[0][key] == pytest.approx(truth[key], rel=RELATIVE), key
    assert min(truth["norms"]) > cells.OPTIMIZER.grad_clip, "clipping should be at work"


@pytest.mark.parametrize("cell", LOW_PRECISION, ids=str)
def test_bf16_stays_within_its_bounds(worlds: Worlds, truth: dict[str, Any], cell: Cell) -> None:
    results = worlds[cell.size].run(cells.train, cell)
    assert all(result == results[0] for result in results), "ranks tell different stories"
    assert results[0]["losses"] == pytest.approx(truth["losses"], rel=LOSS_BF16)
    assert results[0]["norms"] == pytest.approx(truth["norms"], rel=NORM_BF16)
