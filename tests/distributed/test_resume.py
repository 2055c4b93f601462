"""A checkpoint carries everything: bit for bit under its own layout, and under any other."""

from pathlib import Path
from typing import Any

import cells
import pytest
from cells import Cell
from pool import Worlds

BEFORE, AFTER = 3, 3
SOURCE = Cell(tensor=2, pipeline=2)


@pytest.mark.parametrize(
    "cell",
    [
        Cell(zero=0),
        Cell(zero=2),
        Cell(precision="bf16"),
        Cell(precision="fp16"),
        Cell(tensor=2),
        Cell(data=2, zero=3),
        Cell(data=2, zero=2, precision="bf16"),
        Cell(pipeline=2, precision="bf16"),
        Cell(pipeline=2, zero=0),
        Cell(tensor=2, dropout=0.2),
        Cell(pipeline=2, dropout=0.2, recompute="full"),
    ],
    ids=str,
)
def test_resumed_under_the_same_layout_the_run_is_the_same_to_the_bit(
    worlds: Worlds, tmp_path: Path, cell: Cell
) -> None:
    if cell.precision == "fp16" and not worlds[1].run(cells.can_fp16)[0]:
        pytest.skip("this CPU cannot compute in fp16")
    unbroken = worlds[cell.size].run(cells.save_then_go_on, cell, tmp_path, BEFORE, AFTER)
    for rank, resumed in enumerate(worlds[cell.size].run(cells.resume, cell, tmp_path, AFTER)):
        assert resumed["unequal"] == [] and resumed["counted"]
        for key, values in unbroken[rank].items():
            assert resumed[key] == values, key


@pytest.fixture(scope="module")
def source(worlds: Worlds, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("source")
    results = worlds[SOURCE.size].run(cells.save_then_go_on, SOURCE, folder, BEFORE, AFTER)
    return folder, results[0]


@pytest.mark.parametrize(
    "cell",
    [
        *(Cell(zero=zero) for zero in (0, 1, 2, 3)),
        Cell(micro=8),
        Cell(offload=True),
        Cell(tensor=2, zero=3),
        Cell(data=2, zero=3),
        Cell(pipeline=2, zero=0),
        Cell(tensor=4),
    ],
    ids=str,
)
def test_resumed_under_another_layout_all_state_is_equal_and_losses_follow(
    worlds: Worlds, source: tuple[Path, dict[str, Any]], cell: Cell
) -> None:
    folder, unbroken = source
    for resumed in worlds[cell.size].run(cells.resume, cell, folder, AFTER):
        assert resumed["unequal"] == [] and resumed["counted"]
        for key in ("losses", "norms"):
            assert resumed[key] == pytest.approx(unbroken[key], rel=1e-6), key


def test_a_lost_moment_or_a_wrong_step_count_is_seen(
    worlds: Worlds, source: tuple[Path, dict[str, Any]]
) -> None:
    folder, unbroken = source
    lost = worlds[1].run(cells.resume, Cell(), folder, AFTER, "lost moment")[0]
    assert lost["unequal"] == ["exp_avg/h.1.ln_1.bias"]
    wrong = worlds[1].run(cells.resume, Cell(), folder, AFTER, "wrong step count")[0]
    assert not wrong["counted"]
    assert wrong["losses"] != pytest.approx(unbroken["losses"], rel=1e-6)
