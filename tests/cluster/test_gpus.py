"""What Slurm's executor would ask for a job with GPUs; there are none here to run it on."""

import json
import subprocess

import pytest
from tests.cluster.project import ENVIRONMENT

pytestmark = pytest.mark.cluster
ASK = """
import json, sys
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string

class Resources(dict):
    __getattr__ = dict.__getitem__

class Job:
    threads = 128
    resources = Resources(json.load(sys.stdin))

names = ("run_uuid", "slurm_logfile", "comment_str", "account", "partition", "workdir")
print(get_submit_command(Job, dict.fromkeys(names, "")) + set_gres_string(Job))
"""


def asked(**resources: object) -> set[str]:
    done = subprocess.run(
        [str(ENVIRONMENT), "-c", ASK],
        input=json.dumps(resources),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_four_nodes_of_eight_gpus() -> None:
    """The resources that across_nodes gives (tests/workflow/test_profiles.py)."""
    several = {"nodes": 4, "tasks": 4, "cpus_per_task": 32, "mpi": "srun", "tasks_per_gpu": 0}
    options = asked(gres="gpu:8", mem_mb=260000, runtime=1440, **several)
    assert {"--nodes=4", "--ntasks=4", "--cpus-per-task=32", "--gres=gpu:8"} <= options
    assert not [option for option in options if option.startswith("--ntasks-per-gpu")]


def test_one_node_of_eight_gpus() -> None:
    options = asked(gres="gpu:8", mem_mb=260000, runtime=1440)
    assert {"--cpus-per-task=128", "--gres=gpu:8"} <= options
    assert not [option for option in options if option.startswith(("--ntasks", "--nodes"))]
