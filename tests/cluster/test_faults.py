"""Whatever ends a job, the workflow ends with the right artifacts; no step is trained twice."""

import os
import signal
import subprocess

import pytest
from tests.cluster.project import OnSlurm, job_number
from tests.cluster.test_chain import assert_trained_alike
from tests.workflow.project import Project

from web2gpt.io.lease import Lease

pytestmark = [pytest.mark.cluster, pytest.mark.long]
RUN = "results/runs/small"


def middle_of_training(project: OnSlurm) -> tuple[subprocess.Popen[bytes], str]:
    """Start the workflow; gives it and the job's number once some checkpoints are written."""
    workflow = project.start("train")
    job = project.job("train")
    at_step(project, 75)
    return workflow, job


def at_step(project: OnSlurm, step: int) -> None:
    """Wait for a checkpoint of this step or a later one."""

    def stands() -> bool:
        folders = project.folder.glob(f"{RUN}/checkpoints/*/step_*")
        return any(int(folder.name.removeprefix("step_")) >= step for folder in folders)

    project.cluster.wait_for(stands, f"a checkpoint of step {step}", patience=600)


def starts(project: OnSlurm) -> int:
    """How often training began or carried on."""
    (path,) = project.folder.glob(f"{RUN}/checkpoints/*/starts.jsonl")
    return len(path.read_text().splitlines())


def test_a_cancelled_data_job_is_tried_again(prepared: OnSlurm, local: Project) -> None:
    clean = "results/data/small/clean"
    for file in sorted((prepared.folder / clean).iterdir()):
        file.unlink()
    workflow = prepared.start("clean")
    prepared.cluster.ask("scancel", prepared.job("clean_shard"))
    said = prepared.ended(workflow)
    assert "Trying to restart job" in said
    assert prepared.bytes_of(f"{clean}/*") == local.bytes_of(f"{clean}/*")


def test_a_node_that_dies_in_the_middle_of_training(prepared: OnSlurm, local: Project) -> None:
    workflow, job = middle_of_training(prepared)
    cluster = prepared.cluster
    cluster.stop("n2", signal.SIGKILL)
    cluster.wait_for(lambda: cluster.state_of(job) == "PENDING", "the job to be queued again", 300)
    cluster.start_node("n2")
    prepared.ended(workflow)
    assert cluster.state_of(job) == "COMPLETED"
    assert starts(prepared) >= 2
    assert_trained_alike(prepared, local, "small")


def test_preempted_training_is_queued_again_and_carries_on(
    prepared: OnSlurm, local: Project
) -> None:
    workflow, job = middle_of_training(prepared)
    cluster = prepared.cluster
    urgent = ["sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null"]
    cluster.ask(*urgent, "--wrap=srun sleep 1")
    cluster.wait_for(lambda: cluster.state_of(job) == "PENDING", "the job to be queued again", 300)
    prepared.ended(workflow)
    assert cluster.state_of(job) == "COMPLETED"
    assert_trained_alike(prepared, local, "small")


def test_training_that_is_signalled_saves_and_carries_on_in_its_job(
    prepared: OnSlurm, local: Project
) -> None:
    workflow, job = middle_of_training(prepared)
    prepared.cluster.ask("scancel", "--signal=USR1", job)
    prepared.ended(workflow)
    assert prepared.cluster.state_of(job) == "COMPLETED"
    assert starts(prepared) == 2  # both in this job: the rule's retries count inside it too
    assert_trained_alike(prepared, local, "small")


def test_a_job_over_its_time_is_tried_again_with_more(prepared: OnSlurm, local: Project) -> None:
    """The job waits for a lease that the test holds, until its minute is over."""
    shard = "results/data/small/clean/urls-0000.jsonl.zst"
    (prepared.folder / shard).unlink()
    prepared.more = ("--set-resources", "clean_shard:runtime=attempt")
    with Lease(prepared.folder / "results/data/small/work/clean/urls-0000"):
        workflow = prepared.start("clean")
        first = prepared.job("clean_shard")
        cluster = prepared.cluster
        cluster.wait_for(lambda: cluster.state_of(first) == "TIMEOUT", "the time limit", 300)
    prepared.ended(workflow)
    jobs = [job for job in cluster.jobs("all") if "clean_shard" in job[3]]
    second = max((job[0] for job in jobs), key=job_number)
    assert "TimeLimit=00:02:00" in cluster.ask("scontrol", "show", "job", second)
    assert prepared.bytes_of(shard) == local.bytes_of(shard)


def test_snakemake_killed_and_started_again_while_its_job_trains(
    prepared: OnSlurm, local: Project
) -> None:
    workflow, first = middle_of_training(prepared)
    os.kill(workflow.pid, signal.SIGKILL)
    workflow.wait()
    cluster = prepared.cluster
    assert cluster.state_of(first) == "RUNNING"
    again = prepared.start("train")
    prepared.ended(again)
    numbers = [job_number(job[0]) for job in cluster.jobs("all") if "rule_train" in job[3]]
    assert max(numbers) > job_number(first), "the restarted workflow submitted no job of its own"
    assert_trained_alike(prepared, local, "small")


def test_snakemake_interrupted_cancels_its_jobs_and_carries_on(
    prepared: OnSlurm, local: Project
) -> None:
    workflow, job = middle_of_training(prepared)
    workflow.send_signal(signal.SIGINT)
    workflow.wait(timeout=300)
    cluster = prepared.cluster
    cluster.wait_for(lambda: cluster.state_of(job) == "CANCELLED", "the job's end", 300)
    prepared.succeed("train")
    assert starts(prepared) >= 2
    assert_trained_alike(prepared, local, "small")
