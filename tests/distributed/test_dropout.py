"""Dropout: the same masks in recomputation; equal over tensor ranks where activations are."""

import pytest
import rank_tasks
from cells import Cell
from pool import Worlds


@pytest.mark.parametrize(
    ("plain", "recomputed"),
    [
        (Cell(dropout=0.2), Cell(dropout=0.2, recompute="full")),
        (Cell(dropout=0.2), Cell(dropout=0.2, recompute="selective")),
        (Cell(pipeline=2, dropout=0.2), Cell(pipeline=2, dropout=0.2, recompute="full")),
        (Cell(tensor=2, dropout=0.2), Cell(tensor=2, dropout=0.2, recompute="selective")),
    ],
    ids=str,
)
def test_recomputation_draws_the_same_masks(worlds: Worlds, plain: Cell, recomputed: Cell) -> None:
    before = worlds[plain.size].run(rank_tasks.train, plain)[0]
    assert worlds[plain.size].run(rank_tasks.train, recomputed)[0] == before
    assert before["losses"] != worlds[1].run(rank_tasks.train, Cell())[0]["losses"]


def test_a_pipeline_draws_the_masks_of_one_process(worlds: Worlds) -> None:
    alone = worlds[1].run(rank_tasks.train, Cell(dropout=0.2))[0]
    staged = worlds[2].run(rank_tasks.train, Cell(pipeline=2, dropout=0.2))[0]
    assert staged["losses"] == pytest.approx(alone["losses"], rel=1e-6)
