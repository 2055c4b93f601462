"""One cluster for all tests here, and the local runs that theirs are compared with."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.project import ENVIRONMENT, OnSlurm
from tests.cluster.slurm import Cluster, NoClusterError
from tests.workflow.project import Project, small_config


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A Slurm of two nodes. Nothing is skipped in silence: where none can be made, tests fail."""
    assert ENVIRONMENT.exists(), "no .venv-cluster; run make test-cluster"
    # So that the cluster is stopped then; and what a shell starts in the background, and all that
    # this starts in turn, would ignore interrupts.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    try:
        with Cluster() as running:
            yield running
    except NoClusterError as reason:
        pytest.fail(f"the tests of the cluster do not run: {reason}", pytrace=False)


def over_two_nodes(folder: Path, **layout: int) -> dict[str, Any]:
    """The small project, trained on one process of each of two nodes for some seconds."""
    config = small_config(folder)
    config["parallel"] = layout or {"tensor": 2}
    longer = {"steps": 500, "checkpoint_interval": 25, "eval_interval": 250, "log_interval": 25}
    config["train"] |= {"nodes": 2, **longer}
    return config


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The small project, trained on this machine; not to be changed."""
    folder = tmp_path_factory.mktemp("local") / "project"
    folder.mkdir()
    project = Project(folder, over_two_nodes(folder))
    project.succeed("train")
    return project


@pytest.fixture
def prepared(local: Project, cluster: Cluster, tmp_path: Path) -> OnSlurm:
    """The local project with nothing done after the index, a copy; its jobs go to the cluster."""
    copy = local.copy(tmp_path / "project")
    run = copy.folder / "results/runs/small"
    for name in ("checkpoints", "model", "samples", "evaluation", "report", "train", "work"):
        shutil.rmtree(run / name, ignore_errors=True)
    return OnSlurm(cluster, copy.folder, copy.config)
