"""What a rank does not do when it starts, and what a layout leaves behind: nothing."""

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
