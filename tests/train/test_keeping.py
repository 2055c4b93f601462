"""Which checkpoints stay: never is the only good one deleted."""

from pathlib import Path

from web2gpt.checkpoint.format import State, step_folder, step_of
from web2gpt.checkpoint.save import drop_old


def saved(folder: Path, step: int, bad_in_a_row: int = 0) -> None:
    path = folder / step_folder(step)
    path.mkdir()
    State(step, step, step, step, bad_in_a_row=bad_in_a_row).write(path)


def steps(folder: Path) -> list[int]:
    return sorted(step for path in folder.iterdir() if (step := step_of(path)))


def test_the_last_stay_and_those_at_multiples(tmp_path: Path) -> None:
    for step in range(4, 44, 4):
        saved(tmp_path, step)
    (tmp_path / ".tmp-step_00000044").mkdir()
    drop_old(tmp_path, keep=2, keep_every=12)
    assert steps(tmp_path) == [12, 24, 36, 40]
    drop_old(tmp_path, keep=1)
    assert steps(tmp_path) == [40]
    assert len(list(tmp_path.iterdir())) == 1


def test_one_saved_amid_bad_steps_does_not_replace_a_good_one(tmp_path: Path) -> None:
    for step, bad in ((4, 0), (8, 0), (12, 2), (16, 6)):
        saved(tmp_path, step, bad)
    drop_old(tmp_path, keep=1)
    assert steps(tmp_path) == [8, 12, 16]
    saved(tmp_path, 20, 7)
    (tmp_path / step_folder(20) / "state.json").write_bytes(b"{")
    drop_old(tmp_path, keep=1)
    assert 8 in steps(tmp_path)
