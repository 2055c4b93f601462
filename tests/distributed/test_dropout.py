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
        pytest.param(
            Cell(tensor=2, dropout=0.2, sequence=True),
            Cell(tensor=2, dropout=0.2, sequence=True, recompute="full"),
            marks=pytest.mark.long,
        ),
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


@pytest.mark.parametrize(
    "cell", [Cell(pipeline=2, dropout=0.2), Cell(data=2, zero=3, dropout=0.2)], ids=str
)
def test_stages_and_replicas_draw_the_masks_of_one_process(worlds: Worlds, cell: Cell) -> None:
    alone = train(worlds, Cell(dropout=0.2))
    assert train(worlds, cell)["losses"] == pytest.approx(alone["losses"], rel=1e-6)


@pytest.mark.long
def test_masks_of_another_micro_batch_would_show(worlds: Worlds) -> None:
    plain = Cell(pipeline=2, dropout=0.2)
    recomputed = Cell(pipeline=2, dropout=0.2, recompute="full")
    assert train(worlds, recomputed, "masks of another micro-batch") != train(worlds, plain)


def train(worlds: Worlds, cell: Cell, fault: str = "") -> dict[str, Any]:
    """A few steps, as rank 0 tells them."""
    results: dict[str, Any] = worlds[cell.size].run(rank_tasks.train, cell, fault, 3)[0]
    return results
