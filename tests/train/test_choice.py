"""Where a run goes on from: its own newest checkpoint that is whole, else the one it is told of."""

from pathlib import Path
from typing import Any

import pytest

from web2gpt.checkpoint.format import STATE, FileEntry, Index, State, step_folder
from web2gpt.config.train_stage import TrainStage
from web2gpt.config.training import Train
from web2gpt.errors import InputError
from web2gpt.train.job import Job
from web2gpt.train.start import Start, choose_start


def saved(folder: Path, step: int) -> Path:
    path = folder / step_folder(step)
    path.mkdir(parents=True)
    State(step, step, step, step).write(path)
    files = {STATE: FileEntry.of(path / STATE)}
    Index(folder.name, step, {"vocab_size": 257}, {}, files, "fp32").write(path)
    return path


def damaged(path: Path) -> Path:
    content = (path / STATE).read_bytes()
    (path / STATE).write_bytes(content[:-2] + b" }")
    return path


def choose(own: Path, **train: Any) -> tuple[Start, list[str]]:
    said: list[str] = []
    nowhere = Path("nowhere")
    stage = TrainStage(train=Train.model_validate(train))
    job = Job(stage, nowhere, 257, own.name, own, nowhere, "cpu")
    return choose_start(job, said.append), said


def test_nothing_there_is_the_beginning(tmp_path: Path) -> None:
    assert choose(tmp_path / "own") == (Start(None, whole=True), [])


def test_its_own_goes_before_the_one_it_was_told_of(tmp_path: Path) -> None:
    other, own = saved(tmp_path / "other", 40), saved(tmp_path / "own", 8)
    assert choose(own.parent, continue_from=str(other))[0] == Start(own, whole=True)


@pytest.mark.parametrize("mode", ["extend", "branch", "weights"])
def test_one_that_was_named_is_taken_whole_or_for_its_weights(tmp_path: Path, mode: str) -> None:
    other = saved(tmp_path / "other", 40)
    start, _ = choose(tmp_path / "own", continue_from=str(other), continue_mode=mode)
    assert start == Start(other, whole=mode != "weights")


@pytest.mark.parametrize("mode", ["extend", "branch", "weights"])
def test_one_that_was_named_and_is_damaged_is_an_error(tmp_path: Path, mode: str) -> None:
    other = damaged(saved(tmp_path / "other", 40))
    with pytest.raises(InputError, match="the file is damaged"):
        choose(tmp_path / "own", continue_from=str(other), continue_mode=mode)


def test_damaged_ones_are_set_aside_and_told(tmp_path: Path) -> None:
    own = tmp_path / "own"
    whole = saved(own, 4)
    for step in (8, 12):
        damaged(saved(own, step))
    (own / step_folder(16)).mkdir()
    (own / step_folder(20)).write_text("no folder")
    start, said = choose(own)
    assert start == Start(whole, whole=True) and len(said) == 4
    assert all("An older one is taken." in line for line in said)
    assert sorted(path.name for path in own.iterdir() if path.name.startswith("damaged-")) == [
        f"damaged-{step_folder(step)}" for step in (8, 12, 16, 20)
    ]


def test_one_that_is_damaged_again_is_set_aside_again(tmp_path: Path) -> None:
    own = tmp_path / "own"
    for _ in range(3):
        damaged(saved(own, 8))
        assert choose(own)[0] == Start(None, whole=True)
    name = f"damaged-{step_folder(8)}"
    assert sorted(path.name for path in own.iterdir()) == [name, f"{name}.2", f"{name}.3"]
