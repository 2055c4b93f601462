"""Killed with SIGKILL at any stage, the same command carries on and ends as if nothing had been."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.workflow.project import Project, kill_group

SAME = tuple(
    f"results/data/small/{pattern}"
    for pattern in (
        "urls/*",
        "documents/*",
        "dedup/signatures/*",
        "dedup/clusters.parquet",
        "deduped/*",
        "clean/*",
        "rejected/*/*",
        "corpus/*",
        "tokenizer/*",
        "tokens/*",
    )
)
WORK = {
    "fetch": "results/data/small/work/fetch/urls-*/lease.json",
    "dedup": "results/data/small/work/dedup_*/**/lease.json",
    "train": "results/runs/small/checkpoints/*/step_*",
}


def wait_for(project: Project, pattern: str, alive: Callable[[], bool]) -> Path:
    """The first file that matches, as soon as there is one."""
    while alive():
        for found in project.folder.glob(pattern):
            return found
        time.sleep(0.01)
    raise AssertionError(f"the workflow ended before {pattern} was seen")


@pytest.mark.parametrize("stage", ["fetch", "dedup", "train"])
def test_the_whole_group_killed_during_a_stage(
    fresh: Callable[[str], Project], finished: Project, stage: str
) -> None:
    project = fresh(stage)
    process = project.start("all")
    wait_for(project, WORK[stage], lambda: process.poll() is None)
    kill_group(process)
    assert not (project.folder / "results/runs/small/train/done.json").exists()
    project.succeed("all")
    assert project.bytes_of(*SAME) == finished.bytes_of(*SAME)
    assert losses(project) == losses(finished)
    assert "Nothing to be done" in project.succeed("all")


def test_snakemake_killed_alone_while_a_stage_runs_on(
    fresh: Callable[[str], Project], finished: Project
) -> None:
    project = fresh("alone")
    process = project.start("all")
    lease = wait_for(
        project, "results/runs/small/work/train/lease.json", lambda: process.poll() is None
    )
    trainer = json.loads(lease.read_text())["pid"]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert is_running(trainer)
    again = project.start("all")
    holders = set()
    while again.poll() is None:
        holders.update(holder for holder in holders_of(lease))
        trainers = {pid for pid in launchers(project) if pid in holders}
        assert len(trainers) <= 1, "two trainings at once"
        time.sleep(0.05)
    assert again.returncode == 0, (project.folder / "started.log").read_text()[-3000:]
    assert trainer in holders
    assert losses(project) == losses(finished)


def losses(project: Project) -> list[tuple[int, float]]:
    lines = (project.folder / "results/runs/small/train/metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [(record["step"], record["loss"]) for record in records if "loss" in record]


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def holders_of(lease: Path) -> Iterator[int]:
    try:
        yield json.loads(lease.read_text())["pid"]
    except FileNotFoundError:
        return


def launchers(project: Project) -> Iterator[int]:
    """Processes that train in this project's folder."""
    for process in Path("/proc").iterdir():
        try:
            here = process.name.isdigit() and (process / "cwd").readlink() == project.folder
            if here and b"\0train\0" in (process / "cmdline").read_bytes():
                yield int(process.name)
        except OSError:
            continue
