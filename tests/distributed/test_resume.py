"""A checkpoint carries everything: bit for bit under its own layout, and under any other."""

from pathlib import Path
from typing import Any

import pytest
import rank_tasks
from cells import BOUNDS, Cell
from pool import RankError, Worlds

from web2gpt.io.atomic import TEMPORARY

BEFORE, AFTER = 3, 3
SAME = [
    Cell(zero=0),
    Cell(zero=2),
    Cell(precision="bf16", dropout=0.2),
    Cell(precision="fp16"),
    Cell(precision="fp16", loss_scale=1024.0),
    Cell(tensor=2, sequence=True, dropout=0.2),
    Cell(data=2, zero=3),
    Cell(pipeline=2, precision="bf16", dropout=0.2),
    Cell(pipeline=2, dropout=0.2, recompute="full"),
]
SAME_LONG = [
    *(
        Cell(data=2, zero=zero, precision=precision, dropout=0.2)
        for zero in (1, 2, 3)
        for precision in ("fp32", "bf16", "fp16")
    ),
    Cell(pipeline=2, zero=0),
    Cell(pipeline=2, precision="fp16", dropout=0.2),
    Cell(offload=True, zero=3),
    Cell(data=3, zero=3, batch=6),
    Cell(data=3, zero=2, batch=6),
    Cell(tensor=2, pipeline=2, data=2, dropout=0.2),
    Cell(tensor=2, pipeline=2, data=2, sequence=True, precision="bf16", dropout=0.2),
]
LONG = pytest.mark.long

# Source, and what it is resumed as.
ELSEWHERE = [
    (Cell(tensor=2, pipeline=2), Cell(zero=0)),
    (Cell(tensor=2, pipeline=2), Cell(zero=3, micro=8)),
    (Cell(tensor=2, pipeline=2), Cell(tensor=2, zero=3, sequence=True)),
    (Cell(tensor=2, pipeline=2), Cell(data=2, zero=3)),
    (Cell(tensor=2, pipeline=2), Cell(tensor=4)),
    (Cell(), Cell(tensor=2, pipeline=2)),
    (Cell(data=2, zero=3), Cell(data=2, zero=1)),
]
ELSEWHERE_LONG = [
    *(
        (Cell(tensor=2, pipeline=2, data=2), cell)
        for cell in (
            *(Cell(zero=zero) for zero in (0, 1, 2, 3)),
            Cell(tensor=4),
            Cell(pipeline=2, data=2),
            Cell(pipeline=2, data=2, zero=0),
            Cell(data=2, zero=3),
            Cell(offload=True),
            Cell(pipeline=4, micro=1),
            Cell(tensor=2, data=2, zero=3, sequence=True),
        )
    ),
    (Cell(), Cell(tensor=2, pipeline=2, data=2)),
    (Cell(zero=3), Cell(tensor=2, pipeline=2, data=2)),
    (Cell(data=2, zero=1), Cell(data=2, zero=3)),
    (Cell(data=3, zero=3, batch=6), Cell(batch=6)),
    (Cell(batch=6), Cell(data=3, zero=3, batch=6)),
]
BF16_ELSEWHERE = 5e-5  # relative, of losses


@pytest.mark.parametrize(
    "cell", [*SAME, *(pytest.param(c, marks=LONG) for c in SAME_LONG)], ids=str
)
def test_resumed_under_the_same_layout_the_run_is_the_same_to_the_bit(
    worlds: Worlds, tmp_path: Path, cell: Cell
) -> None:
    world = worlds[cell.size]
    unbroken = world.run(rank_tasks.save_then_go_on, cell, tmp_path, BEFORE, AFTER)
    for rank, resumed in enumerate(world.run(rank_tasks.resume, cell, tmp_path, AFTER)):
        require_whole(resumed)
        for key, values in unbroken[rank].items():
            assert resumed[key] == values, key


class Sources:
    """Checkpoints and what followed them in the unbroken run, one for each layout."""

    def __init__(self, worlds: Worlds, folder: Path):
        self._worlds, self._folder = worlds, folder
        self._made: dict[Cell, tuple[Path, dict[str, Any]]] = {}

    def of(self, cell: Cell) -> tuple[Path, dict[str, Any]]:
        if cell not in self._made:
            folder = self._folder / str(cell)
            task = rank_tasks.save_then_go_on
            results = self._worlds[cell.size].run(task, cell, folder, BEFORE, AFTER)
            self._made[cell] = folder, results[0]
        return self._made[cell]


@pytest.fixture(scope="module")
def sources(worlds: Worlds, tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(worlds, tmp_path_factory.mktemp("sources"))


@pytest.mark.parametrize(
    ("source", "cell"),
    [*ELSEWHERE, *(pytest.param(*pair, marks=LONG) for pair in ELSEWHERE_LONG)],
    ids=str,
)
def test_resumed_under_another_layout_all_state_is_equal_and_losses_follow(
    worlds: Worlds, sources: Sources, source: Cell, cell: Cell
) -> None:
    folder, unbroken = sources.of(source)
    for resumed in worlds[cell.size].run(rank_tasks.resume, cell, folder, AFTER):
        require_whole(resumed)
        for key in ("losses", "norms"):
            assert resumed[key] == pytest.approx(unbroken[key], rel=1e-6), key


@LONG
@pytest.mark.parametrize(
    "cell", [Cell(precision="bf16"), Cell(pipeline=2, precision="bf16")], ids=str
)
def test_bf16_resumed_under_another_layout_follows_within_its_bound(
    worlds: Worlds, sources: Sources, cell: Cell
) -> None:
    folder, unbroken = sources.of(Cell(tensor=2, pipeline=2, precision="bf16"))
    for resumed in worlds[cell.size].run(rank_tasks.resume, cell, folder, AFTER):
        require_whole(resumed)
        assert resumed["losses"] == pytest.approx(unbroken["losses"], rel=BF16_ELSEWHERE)


@pytest.mark.parametrize(
    "cell",
    [
        Cell(precision="fp16", zero=2, dropout=0.2),
        *(
            pytest.param(Cell(data=2, zero=zero, precision=precision, dropout=0.2), marks=LONG)
            for precision in ("fp32", "bf16", "fp16")
            for zero in (1, 2, 3)
        ),
    ],
    ids=str,
)
def test_killed_after_a_random_step_the_run_ends_as_if_it_had_not_been(
    worlds: Worlds, tmp_path: Path, cell: Cell
) -> None:
    steps = 8
    (tmp_path / "unbroken").mkdir()
    unbroken = worlds[cell.size].run(
        rank_tasks.save_then_go_on, cell, tmp_path / "unbroken", 0, steps
    )
    with pytest.raises(RankError, match=r"died|[Cc]onnection|closed"):
        worlds[cell.size].run(rank_tasks.train_until_killed, cell, tmp_path, 2, steps)
    for rank, resumed in enumerate(worlds[cell.size].run(rank_tasks.resume, cell, tmp_path, 2)):
        require_whole(resumed)
        done = resumed["step"]
        assert done in (2, 4, 6)
        for key, values in unbroken[rank].items():
            assert resumed[key] == values[done : done + 2], key


@LONG
@pytest.mark.parametrize(
    "cell",
    [
        Cell(precision="fp16"),
        Cell(data=2, zero=3, precision="fp16"),
        Cell(pipeline=2, precision="fp16"),
        Cell(tensor=2, zero=2, precision="fp16", offload=True),
    ],
    ids=str,
)
def test_fp16_takes_its_loss_scale_to_another_layout(
    worlds: Worlds, tmp_path: Path, cell: Cell
) -> None:
    source = Cell(tensor=2, pipeline=2, precision="fp16")
    task = rank_tasks.save_then_go_on
    unbroken = worlds[4].run(task, source, tmp_path, BEFORE, AFTER, 2)[0]
    for resumed in worlds[cell.size].run(rank_tasks.resume, cell, tmp_path, AFTER):
        require_whole(resumed)
        assert resumed["scale"] == 2.0**15, "two overflows have halved it"
        assert resumed["losses"] == pytest.approx(unbroken["losses"], rel=BOUNDS["fp16"][0])
    lost = worlds[cell.size].run(rank_tasks.resume, cell, tmp_path, AFTER, "lost loss scale")
    assert not any(rank["counted"] for rank in lost)


def test_a_fixed_loss_scale_is_the_settings_whatever_the_checkpoint_had(
    worlds: Worlds, tmp_path: Path
) -> None:
    dynamic, fixed = Cell(precision="fp16"), Cell(precision="fp16", loss_scale=1024.0)
    worlds[1].run(rank_tasks.save_then_go_on, dynamic, tmp_path, 1, 0)
    assert worlds[1].run(rank_tasks.resume, fixed, tmp_path, 1)[0]["scale"] == 1024.0


@pytest.mark.parametrize(
    "moment",
    [
        "save_file",  # as the ranks write their files
        pytest.param("Index.write", marks=LONG),  # as rank 0 writes the index
        "sync_folder",  # just before the draft gets its name
        pytest.param("drop_old", marks=LONG),  # just after
    ],
)
def test_killed_in_the_middle_of_a_save_the_run_goes_on_from_a_whole_one(
    worlds: Worlds, tmp_path: Path, moment: str
) -> None:
    cell = Cell(tensor=2, dropout=0.2)
    unbroken = worlds[2].run(rank_tasks.save_then_go_on, cell, tmp_path, BEFORE, AFTER)
    with pytest.raises(RankError, match=r"died|[Cc]onnection|closed"):
        worlds[2].run(rank_tasks.die_in_a_save, cell, tmp_path, moment)
    drafts = [path.name for path in tmp_path.iterdir() if path.name.startswith(TEMPORARY)]
    assert len(drafts) == (moment != "drop_old"), "killed too early or too late"
    for rank, resumed in enumerate(worlds[2].run(rank_tasks.resume, cell, tmp_path, AFTER)):
        require_whole(resumed)
        assert resumed["step"] == BEFORE + (moment == "drop_old")
        done = resumed["step"] - BEFORE
        for key, values in unbroken[rank].items():
            assert resumed[key][: AFTER - done] == values[done:], key


def test_a_lost_moment_or_a_wrong_step_count_is_seen(worlds: Worlds, sources: Sources) -> None:
    folder, unbroken = sources.of(Cell(tensor=2, pipeline=2))
    lost = worlds[1].run(rank_tasks.resume, Cell(), folder, AFTER, "lost moment")[0]
    assert lost["unequal"] == ["exp_avg/h.1.ln_1.bias"]
    wrong = worlds[1].run(rank_tasks.resume, Cell(), folder, AFTER, "wrong step count")[0]
    assert not wrong["counted"]
    assert wrong["faults"] == ["AdamW has counted 4 steps on rank 0, not 3"]
    assert wrong["losses"] != pytest.approx(unbroken["losses"], rel=1e-6)


def require_whole(resumed: dict[str, Any]) -> None:
    assert resumed["unequal"] == [], "not what the files hold"
    assert resumed["counted"], "counters or loss scale"
    assert resumed["faults"] == []
