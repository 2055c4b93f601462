"""Every start of a run is noted beside its checkpoints, for the report to count."""

from pathlib import Path

import orjson
import pytest

from web2gpt.config.train_stage import TrainStage
from web2gpt.train.job import Job
from web2gpt.train.memory import Case, worst_memory
from web2gpt.train.start_log import STARTS, note_start


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(TrainStage(), tmp_path / "m.json", 2048, "0123", tmp_path, tmp_path, "cpu", {})


def test_each_start_is_a_row_with_its_step(job: Job) -> None:
    for step in (0, 40, 40):
        note_start(job, step)
    rows = [orjson.loads(line) for line in (job.run_folder / STARTS).read_bytes().splitlines()]
    assert [row["step"] for row in rows] == [0, 40, 40]
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)


def test_the_memory_that_is_expected_stands_beside(job: Job) -> None:
    note_start(job, 0)
    stage = job.stage
    expected = worst_memory(Case(stage.model, stage.parallel, stage.train, 2048)).allocated
    row = orjson.loads((job.run_folder / STARTS).read_bytes())
    assert row["estimated_bytes"] == int(expected)
    assert row["estimated_bytes"] > 12 * 1_000_000
