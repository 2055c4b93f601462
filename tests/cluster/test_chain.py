"""The whole chain through Slurm gives what a local run gives, training on two nodes included."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.project import OnSlurm, job_number
from tests.cluster.slurm import Cluster
from tests.workflow.project import REPOSITORY, Project

pytestmark = pytest.mark.cluster
SAME = (
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


def test_training_over_two_nodes_is_that_of_one(prepared: OnSlurm, local: Project) -> None:
    """The short form: tensor=2 with a rank on each node; and one stage as a job array."""
    prepared.succeed("train")
    assert nodes_of_training(prepared) == {"n1", "n2"}
    assert_trained_alike(prepared, local, "small")
    shutil.rmtree(prepared.folder / "results/data/small/clean")
    assert "Submitted array job" in prepared.succeed("clean")
    clean = ("results/data/small/clean/*",)
    assert prepared.bytes_of(*clean) == local.bytes_of(*clean)


@pytest.mark.long
def test_replicas_on_two_nodes_train_as_on_one(
    prepared: OnSlurm, local: Project, tmp_path: Path
) -> None:
    """data=2, a replica on each node, sharing the optimizer (ZeRO 1)."""
    here = local.copy(tmp_path / "here")
    layout = {"parallel": {"data": 2, "zero": 1}, "run": {**local.config["run"], "name": "data2"}}
    shorter = {"steps": 60, "micro_batch_size": 2}
    config = {**local.config, **layout, "train": {**local.config["train"], **shorter}}
    for project in (here, prepared):
        project.write_config(config)
        project.succeed("train")
    assert nodes_of_training(prepared) == {"n1", "n2"}
    assert_trained_alike(prepared, here, "data2")


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_demo_s_whole_chain(cluster: Cluster, tmp_path: Path) -> None:
    demo = yaml.safe_load((REPOSITORY / "config.yaml").read_text())
    demo["train"]["nodes"] = 2
    here, there = Project(tmp_path / "here", demo), OnSlurm(cluster, tmp_path / "there", demo)
    here.succeed("all")
    there.succeed("all")
    same = tuple(f"results/data/demo/{pattern}" for pattern in SAME)
    assert there.bytes_of(*same) == here.bytes_of(*same)
    assert_trained_alike(there, here, "demo")
    model = ("results/runs/demo/model/*", "results/runs/demo/samples/*")
    assert there.bytes_of(*model) == here.bytes_of(*model)


@pytest.mark.long
def test_shards_go_in_as_one_array_though_the_first_takes_longest(
    cluster: Cluster, tmp_path: Path
) -> None:
    config = {
        "data": {"name": "small", "shards": 6},
        "run": {"name": "small"},
        "input": [{"name": "lines", "kind": "jsonl", "paths": ["lines"], "keys": {"id": "id"}}],
    }
    here, there = Project(tmp_path / "here", config), OnSlurm(cluster, tmp_path / "there", config)
    for project in (here, there):
        write_lines(project.folder / "lines")
    here.succeed("extract")
    assert there.succeed("extract").count("Submitted array job") == 1
    documents = ("results/data/small/documents/*",)
    assert len(there.bytes_of(*documents)) == 6
    assert there.bytes_of(*documents) == here.bytes_of(*documents)


def write_lines(folder: Path) -> None:
    """Six files of documents, the first of them with a thousand times as many."""
    folder.mkdir()
    for number in range(6):
        lines = [
            json.dumps({"id": f"{number}-{line}", "text": f"Document {line} of file {number}."})
            for line in range(50_000 if number == 0 else 50)
        ]
        (folder / f"{number}.jsonl").write_text("\n".join(lines))


def test_the_profile_of_one_machine_is_refused(prepared: OnSlurm) -> None:
    prepared.flag = "--profile"
    before = prepared.cluster.jobs("all")
    done = prepared.run("train")
    assert done.returncode == 1
    assert "--workflow-profile workflow/profiles/slurm, not --profile" in done.stdout
    assert prepared.cluster.jobs("all") == before


def assert_trained_alike(one: Project, other: Project, run: str) -> None:
    """To the bit: the same machine type, layout and threads."""
    assert losses(one, run) == losses(other, run)
    last = sorted((one.folder / f"results/runs/{run}/checkpoints").glob("*/step_*"))[-1]
    state = f"{last.relative_to(one.folder)}/*.safetensors"
    assert one.bytes_of(state) == other.bytes_of(state) != {}


def losses(project: Project, run: str) -> list[Any]:
    """Of each step in the result; none may stand twice."""
    path = project.folder / f"results/runs/{run}/train/metrics.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    found = [(record["step"], record["loss"]) for record in records if "loss" in record]
    assert [step for step, _ in found] == sorted({step for step, _ in found})
    return [loss for _, loss in found]


def nodes_of_training(project: OnSlurm) -> set[str]:
    """The nodes of the last job of training."""
    jobs = [job for job in project.cluster.jobs("all") if "rule_train" in job[3]]
    last = max(jobs, key=lambda job: job_number(job[0]))
    assert last[1] == "COMPLETED", jobs
    return set(project.cluster.ask("scontrol", "show", "hostnames", last[2]).split())
