"""Which checkpoints stay: never is the only good one deleted."""

from pathlib import Path

import pytest

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


def test_a_deletion_that_ends_half_way_leaves_no_half_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (4, 8):
        saved(tmp_path, step)
    with monkeypatch.context() as refuses:
        refuses.setattr("shutil.rmtree", refuse)
        (fault,) = drop_old(tmp_path, keep=1)
    assert ".tmp-step_00000004: cannot be deleted" in fault and "no way" in fault
    assert steps(tmp_path) == [8]
    assert drop_old(tmp_path, keep=1) == []
    assert len(list(tmp_path.iterdir())) == 1


def refuse(path: Path) -> None:
    raise OSError("no way")


def test_one_saved_amid_bad_steps_does_not_replace_a_good_one(tmp_path: Path) -> None:
    for step, bad in ((4, 0), (8, 0), (12, 2), (16, 6)):
        saved(tmp_path, step, bad)
    drop_old(tmp_path, keep=1)
    assert steps(tmp_path) == [8, 12, 16]
    saved(tmp_path, 20, 7)
    (tmp_path / step_folder(20) / "state.json").write_bytes(b"{")
    drop_old(tmp_path, keep=1)
    assert 8 in steps(tmp_path)
