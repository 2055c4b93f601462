"""A training run that was asked to stop is carried on by the rule's retries; an error is not."""

import json
import os
import shutil
import signal
import subprocess
import time
from copy import deepcopy
from pathlib import Path

import pytest
from tests.workflow.project import Project

RUN = "results/runs/small"
ATTEMPTS = 4  # one, and three retries


def without_training(project: Project) -> Path:
    """Forget the run's training; its index stays. Gives the run's folder."""
    folder = project.folder / RUN
    for part in ("train", "checkpoints", "work"):
        shutil.rmtree(folder / part)
    return folder


def test_sigterm_to_the_launcher_is_carried_on_to_the_same_losses(
    rerun: Project, finished: Project
) -> None:
    folder = without_training(rerun)
    config = deepcopy(rerun.config)
    config["train"]["checkpoint_interval"] = 1  # no part of the run; steps take longer
    rerun.write_config(config)
    process = rerun.start("train")
    launcher = wait_for_steps(folder, process)
    os.kill(launcher, signal.SIGTERM)
    assert process.wait() == 0, (rerun.folder / "started.log").read_text()[-4000:]
    told = (rerun.folder / "started.log").read_text()
    assert "exit status 75" in told and told.count("Trying to restart") == 1
    assert "carries on from" in (folder / "logs/train.log").read_text()
    assert losses(rerun) == losses(finished)


def wait_for_steps(folder: Path, process: subprocess.Popen[bytes]) -> int:
    """Wait until steps have been taken; gives the launcher's process."""
    while process.poll() is None:
        if any(path.stat().st_size for path in folder.glob("checkpoints/*/metrics.jsonl")):
            assert not (folder / "train/done.json").exists()
            return int(json.loads((folder / "work/train/lease.json").read_text())["pid"])
        time.sleep(0.002)
    raise AssertionError("the workflow ended before a step was seen")


@pytest.mark.long
def test_a_run_that_diverges_is_not_started_again(rerun: Project) -> None:
    folder = without_training(rerun)
    config = deepcopy(rerun.config)
    config["optimizer"] = {"lr": 1e30}
    config["schedule"] = {"warmup_fraction": 0.0}
    config["train"]["max_bad_steps"] = 1
    rerun.write_config(config)
    done = rerun.run("train")
    assert done.returncode == 1 and "is not finite" in done.stdout
    assert json.loads((folder / "work/train_error.json").read_text())["attempt"] == ATTEMPTS
    last = (folder / "logs/train.log").read_text()
    assert "is not finite" in last and "starts at step" not in last


def losses(project: Project) -> list[tuple[int, float]]:
    lines = (project.folder / RUN / "train/metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [(record["step"], record["loss"]) for record in records if "loss" in record]
