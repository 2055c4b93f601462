"""How long gathered weights stay under ZeRO 3: what the estimate takes for granted, and why."""

import gathered_tasks
import pytest
from cells import Cell
from pool import Worlds

from web2gpt.parallel.deepspeed_config import REUSE


@pytest.mark.parametrize(("reuse", "kept"), [(REUSE, True), (0, False)])
def test_what_is_used_again_soon_stays_whole_between_the_passes_and_no_longer(
    worlds: Worlds, reuse: int, kept: bool
) -> None:
    found = worlds[1].run(gathered_tasks.blocks_that_are_whole, Cell(zero=3), reuse)
    assert found == [(kept, False)]


@pytest.mark.long
@pytest.mark.parametrize("tensor", [1, 2])
def test_a_graph_does_not_hold_gathered_weights(worlds: Worlds, tensor: int) -> None:
    compiled = Cell(compile="on", tensor=tensor, data=2, zero=3)
    assert worlds[compiled.size].run(gathered_tasks.weights_kept_whole, compiled)[0] == []


@pytest.mark.long
def test_a_weight_held_by_a_view_would_show(worlds: Worlds) -> None:
    """torch's own linear layer, not compiled, keeps its weight's transpose."""
    assert (32, 32) in worlds[1].run(gathered_tasks.weights_kept_whole, Cell())[0]
