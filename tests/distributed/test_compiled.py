"""Compiled blocks and loss: the same training as without, under every kind of layout.

Most of it goes through the compiler's front alone (tracing, differentiation, operators between
ranks), whose result runs as it is; that is where layouts, seeding and recomputation could go wrong,
and it needs no C compiler. Code that was really compiled is the long test's.
"""

import shutil
from typing import Any

import pytest
import rank_tasks
from cells import Cell
from plain_loop import train_plainly
from pool import Worlds

RELATIVE = 1e-6
KEYS = ("losses", "norms", "valid")
GRAPHS = 6  # the block in training and in evaluation, the two passes over the logits

SHORT = [Cell(tensor=2, sequence=True, recompute="full", compile="on")]
ALL = [
    Cell(compile="on", recompute="full"),
    Cell(compile="on", tensor=2, sequence=True),
    Cell(compile="on", zero=0),
    Cell(compile="on", zero=3),
    Cell(compile="on", recompute="selective"),
    Cell(compile="on", tensor=2),
    Cell(compile="on", tensor=2, recompute="full"),
    Cell(compile="on", pipeline=2),
    Cell(compile="on", pipeline=2, recompute="full"),
    Cell(compile="on", data=2, zero=2),
    Cell(compile="on", zero=3, precision="bf16"),
    Cell(compile="on", data=2, zero=3),
    Cell(compile="on", data=2, zero=3, recompute="full"),
    Cell(compile="on", tensor=2, data=2, zero=3, sequence=True),
    Cell(compile="on", tensor=2, pipeline=2, sequence=True),
]
REAL = [
    Cell(compile="on"),
    Cell(compile="on", tensor=2),
    Cell(compile="on", tensor=2, sequence=True),
    Cell(compile="on", precision="bf16"),
]


def long(cells: list[Cell]) -> list[Any]:
    return [pytest.param(cell, marks=pytest.mark.long) for cell in cells]


@pytest.mark.parametrize("cell", [*SHORT, *long(ALL)], ids=str)
def test_traced_blocks_train_as_a_plain_loop_does(worlds: Worlds, cell: Cell) -> None:
    _compare(worlds[cell.size].run(rank_tasks.train_compiled, cell, "aot_eager"), bound(cell))


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler here")
@pytest.mark.parametrize("cell", REAL, ids=str)
def test_compiled_blocks_train_as_a_plain_loop_does(worlds: Worlds, cell: Cell) -> None:
    _compare(worlds[cell.size].run(rank_tasks.train_compiled, cell, "inductor"), bound(cell))


@pytest.mark.long
@pytest.mark.parametrize("tensor", [1, 2])
def test_dropout_is_the_same_again_and_when_recomputed(worlds: Worlds, tensor: int) -> None:
    losses = [
        worlds[tensor].run(
            rank_tasks.train_compiled,
            Cell(tensor=tensor, compile="on", dropout=0.2, recompute=kind),
            "aot_eager",
        )[0]["losses"]
        for kind in ("none", "none", "full")
    ]
    assert losses[0] == losses[1]
    assert losses[0] == pytest.approx(losses[2], rel=RELATIVE)


def bound(cell: Cell) -> float:
    return RELATIVE if cell.precision == "fp32" else 3e-2


def _compare(results: list[dict[str, Any]], bound: float) -> None:
    truth = train_plainly()
    graphs = [result.pop("graphs") for result in results]  # the loss has its own, where it is
    assert min(graphs) > 0 and max(graphs) <= GRAPHS, "one compiled block serves all"
    assert all(result == results[0] for result in results), "ranks tell different stories"
    assert results[0]["faults"] == [], "copies differ"
    for key in KEYS:
        assert results[0][key] == pytest.approx(truth[key], rel=bound), key
