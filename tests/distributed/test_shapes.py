"""Sizes at the edge of what is legal train as the plain loop does too, and survive a checkpoint."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import rank_tasks
from cells import RELATIVE, Cell, Shape
from plain_loop import train_plainly
from pool import Worlds

LONG = pytest.mark.long

NO_ROWS = Shape(vocab_multiple=128)  # of four tensor ranks the last has padding only
FEW_TOKENS = Shape(vocab=3, vocab_multiple=1)  # fewer than tensor ranks
ODD_HEADS = Shape(n_embd=33, n_head=3)
ONE_POSITION = Shape(n_positions=1)
SMALLEST = Shape(n_layer=1, n_embd=2, n_head=1, n_positions=2, vocab=2, vocab_multiple=1)

SHORT = [Cell(tensor=4, shape=NO_ROWS), Cell(pipeline=2, shape=ONE_POSITION)]
ALL = [
    Cell(tensor=4, shape=FEW_TOKENS),
    Cell(tensor=3, shape=ODD_HEADS),
    *(Cell(tensor=4, zero=zero, sequence=True, shape=NO_ROWS) for zero in (0, 2, 3)),
    Cell(tensor=4, pipeline=2, shape=NO_ROWS),
    Cell(tensor=4, data=2, zero=3, shape=FEW_TOKENS),
    Cell(tensor=3, pipeline=2, shape=ODD_HEADS),
    Cell(tensor=3, data=2, zero=3, recompute="full", shape=ODD_HEADS),
    Cell(tensor=2, shape=ONE_POSITION),
    Cell(tensor=2, shape=Shape(n_positions=7)),
    Cell(pipeline=3, micro=1, shape=Shape(n_layer=3)),
    *(Cell(data=4, zero=zero, shape=SMALLEST) for zero in range(4)),
    # As far as eight processes reach in one direction, which the usual model's sizes do not allow.
    *(Cell(tensor=ranks, shape=Shape(n_head=ranks, n_embd=6 * ranks)) for ranks in (5, 8)),
    Cell(pipeline=7, micro=1, shape=Shape(n_layer=8)),
    *(Cell(pipeline=8, zero=zero, micro=1, shape=Shape(n_layer=8)) for zero in (0, 1)),
]


@cache
def truth(shape: Shape) -> dict[str, Any]:
    return train_plainly(shape=shape)


@pytest.mark.parametrize("cell", [*SHORT, *(pytest.param(c, marks=LONG) for c in ALL)], ids=str)
def test_losses_and_norms_are_those_of_a_plain_loop(worlds: Worlds, cell: Cell) -> None:
    results = worlds[cell.size].run(rank_tasks.train, cell)
    assert all(result == results[0] for result in results), "ranks tell different stories"
    assert results[0]["faults"] == []
    for key in ("losses", "norms", "valid"):
        assert results[0][key] == pytest.approx(truth(cell.shape)[key], rel=RELATIVE), key


@LONG
@pytest.mark.parametrize(
    ("source", "cell"),
    [
        (Cell(tensor=4, shape=NO_ROWS), Cell(tensor=2, shape=Shape(vocab_multiple=1))),
        (Cell(shape=FEW_TOKENS), Cell(tensor=4, shape=FEW_TOKENS)),
        (Cell(tensor=4, shape=FEW_TOKENS), Cell(shape=FEW_TOKENS)),
        (Cell(data=4, zero=3, shape=SMALLEST), Cell(data=3, zero=2, batch=6, shape=SMALLEST)),
    ],
    ids=str,
)
def test_a_vocabulary_padded_otherwise_resumes_with_all_state(
    worlds: Worlds, tmp_path: Path, source: Cell, cell: Cell
) -> None:
    unbroken = worlds[source.size].run(rank_tasks.save_then_go_on, source, tmp_path, 3, 3)[0]
    for resumed in worlds[cell.size].run(rank_tasks.resume, cell, tmp_path, 3):
        assert resumed["unequal"] == [] and resumed["counted"] and resumed["faults"] == []
        if source.batch == cell.batch:
            assert resumed["losses"] == pytest.approx(unbroken["losses"], rel=RELATIVE)
