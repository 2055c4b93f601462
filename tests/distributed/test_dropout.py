"""Dropout: the same masks in recomputation; equal over tensor ranks where activations are."""

from typing import Any

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
    before = train(worlds, plain)
    assert train(worlds, recomputed) == before
    assert before["losses"] != train(worlds, Cell())["losses"]


@pytest.mark.parametrize(
    "cell",
    [Cell(pipeline=2, dropout=0.2), Cell(tensor=2, dropout=0.2, sequence=True)],
    ids=str,
)
def test_all_copies_stay_equal_under_dropout(worlds: Worlds, cell: Cell) -> None:
    assert train(worlds, cell)["faults"] == []


def test_a_pipeline_draws_the_masks_of_one_process(worlds: Worlds) -> None:
    alone = train(worlds, Cell(dropout=0.2))
    staged = train(worlds, Cell(pipeline=2, dropout=0.2))
    assert staged["losses"] == pytest.approx(alone["losses"], rel=1e-6)


def train(worlds: Worlds, cell: Cell) -> dict[str, Any]:
    """A few steps, as rank 0 tells them."""
    results: dict[str, Any] = worlds[cell.size].run(rank_tasks.train, cell, "", 3)[0]
    return results
