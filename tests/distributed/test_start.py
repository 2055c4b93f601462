"""What a rank does not do when it starts."""

import rank_tasks
from cells import Cell
from pool import Worlds


def test_nothing_is_compiled_and_no_compiler_set_up(worlds: Worlds) -> None:
    inductor = "torch._inductor.compile_fx"
    assert worlds[1].run(rank_tasks.train_and_look_at_imports, Cell(), inductor) == [False]
