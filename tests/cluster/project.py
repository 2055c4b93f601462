"""A project whose jobs go through Slurm, with this repository's own profile for it."""

import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.cluster.slurm import Cluster
from tests.workflow.project import REPOSITORY, Project

ENVIRONMENT = REPOSITORY / ".venv-cluster/bin/python"  # the only one with the executor plugin
QUICKLY = (  # a small cluster answers at once; the profile's intervals are for large ones
    "--slurm-init-seconds-before-status-checks",
    "5",
    "--seconds-between-status-checks",
    "5",
    "--latency-wait",
    "20",
)


def job_number(job: str) -> int:
    """Of a job, or of the array whose task it is (``10_2``): later ones have larger numbers."""
    return int(job.partition("_")[0])


class OnSlurm(Project):
    """``Project`` under ``--workflow-profile workflow/profiles/slurm``, on the tests' cluster."""

    def __init__(self, cluster: Cluster, folder: Path, config: dict[str, Any]):
        super().__init__(folder, config)
        self.cluster = cluster
        self.flag = "--workflow-profile"
        self.more: tuple[str, ...] = ()  # options beside the profile's

    def command(self, *arguments: str, cores: int = 2) -> list[str]:
        options = ["--snakefile", str(REPOSITORY / "workflow/Snakefile"), self.flag]
        profile = str(REPOSITORY / "workflow/profiles/slurm")
        program = [str(ENVIRONMENT), "-m", "snakemake"]
        return [*program, *options, profile, *QUICKLY, *self.more, "--", *arguments]

    def job(self, rule: str, state: str = "RUNNING") -> str:
        """Wait for a job of a rule to be in a state; gives its number."""
        found: list[str] = []

        def looks() -> bool:
            jobs = self.cluster.jobs(state)
            found[:] = [number for number, _, _, comment in jobs if f"rule_{rule}" in comment]
            return bool(found)

        self.cluster.wait_for(looks, f"a job of {rule} to be {state}", patience=600)
        return found[0]

    def ended(self, workflow: subprocess.Popen[bytes], patience: float = 900) -> str:
        """Wait for a workflow that was started, successful; gives all that it said."""
        try:
            code = workflow.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            workflow.send_signal(signal.SIGINT)
            workflow.wait(timeout=60)
            code = -1
        said = (self.folder / "started.log").read_text()
        assert code == 0, said[-4000:] + self.log_of_training()[-3000:]
        return said

    def log_of_training(self) -> str:
        path = self.folder / f"results/runs/{self.config['run']['name']}/logs/train.log"
        return path.read_text() if path.exists() else ""
