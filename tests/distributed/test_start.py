"""Where training starts: at the very weights given. What a rank does not do meanwhile, and what a
layout leaves behind: nothing."""

import pytest
import rank_tasks
from cells import Cell
from pool import Worlds


def test_nothing_is_compiled_and_no_compiler_set_up(worlds: Worlds) -> None:
    inductor = "torch._inductor.compile_fx"
    assert worlds[1].run(rank_tasks.train_and_look_at_imports, Cell(), inductor) == [False]


def test_zero_3_leaves_nothing_behind_for_the_layout_after_it(worlds: Worlds) -> None:
    cell = Cell(precision="fp16")  # shows the least difference in rounding
    before = worlds[1].run(rank_tasks.train, cell, "", 3)
    worlds[1].run(rank_tasks.train, Cell(zero=3), "", 1)
    assert worlds[1].run(rank_tasks.train, cell, "", 3) == before


@pytest.mark.parametrize(
    "cell",
    [
        Cell(),
        *(Cell(zero=zero) for zero in (0, 3)),
        *(Cell(precision="bf16", zero=zero, data=2) for zero in (1, 2, 3)),
        *(Cell(precision="fp16", zero=zero) for zero in (1, 3)),
        *(Cell(precision="bf16", zero=zero, data=2, offload=True) for zero in (2, 3)),
        Cell(precision="bf16", tensor=2, sequence=True),
        Cell(precision="bf16", zero=3, tensor=2),
        Cell(precision="bf16", pipeline=2),
        Cell(precision="fp16", pipeline=2, tensor=2),
    ],
    ids=str,
)
def test_the_optimizer_starts_from_unrounded_weights(worlds: Worlds, cell: Cell) -> None:
    assert worlds[cell.size].run(rank_tasks.weights_not_as_given, cell) == [[]] * cell.size
