"""Operators by which compiled code speaks to other ranks are what the compiler takes them for."""

import operator_tasks
import pytest
from cells import Cell
from pool import Worlds


@pytest.mark.parametrize("sequence", [False, True])
def test_results_have_the_shape_and_strides_that_the_compiler_is_told(
    worlds: Worlds, sequence: bool
) -> None:
    cell = Cell(tensor=2, sequence=sequence)
    assert worlds[2].run(operator_tasks.check_operators, cell) == [[], []]
