"""Killed with SIGKILL at any stage, the same command carries on and ends as if nothing had been."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.workflow.project import Project, kill_group

from web2gpt.io.processes import started

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


def wait_for(project: Project, pattern: str, workflow: subprocess.Popen[bytes]) -> Path:
    """The first file that matches, as soon as there is one."""
    while workflow.poll() is None:
        for found in project.folder.glob(pattern):
            return found
        time.sleep(0.01)
    raise AssertionError(f"the workflow ended before {pattern} was seen")


def test_the_whole_group_killed_in_three_stages(
    fresh: Callable[[str], Project], finished: Project
) -> None:
    project = fresh("killed")
    for pattern in WORK.values():
        process = project.start("all")
        wait_for(project, pattern, process)
        kill_group(process)
    assert not (project.folder / "results/runs/small/train/done.json").exists()
    project.succeed("all")
    assert project.bytes_of(*SAME) == finished.bytes_of(*SAME)
    assert losses(project) == losses(finished)
    assert "Nothing to be done" in project.succeed("all")


def test_snakemake_killed_alone_while_training_runs_on(rerun: Project, finished: Project) -> None:
    project = rerun
    shutil.rmtree(project.folder / "results/runs")
    lease = project.folder / "results/runs/small/work/train/lease.json"
    process = project.start("train")
    wait_for(project, str(lease.relative_to(project.folder)), process)
    trainer = json.loads(lease.read_text())["pid"]
    refused = project.run("train")
    assert refused.returncode == 1
    assert "results/runs/small: another Snakemake is at work here" in refused.stdout
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert is_running(trainer)
    again = project.start("train")
    holders = {trainer}
    while again.poll() is None:
        holder = holder_of(lease)
        if holder is not None and holder not in holders:
            assert ends_soon(trainer), "a second training began while the first ran on"
            holders.add(holder)
        time.sleep(0.02)
    assert again.returncode == 0, (project.folder / "started.log").read_text()[-3000:]
    assert losses(project) == losses(finished)


def losses(project: Project) -> list[tuple[int, float]]:
    lines = (project.folder / "results/runs/small/train/metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [(record["step"], record["loss"]) for record in records if "loss" in record]


def is_running(pid: int) -> bool:
    return started(pid) != ""


def ends_soon(pid: int) -> bool:
    """Whether a process that gave its lease back has nothing left to do but to end."""
    until = time.monotonic() + 3
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_running(pid)


def holder_of(lease: Path) -> int | None:
    try:
        return int(json.loads(lease.read_text())["pid"])
    except FileNotFoundError:
        return None
