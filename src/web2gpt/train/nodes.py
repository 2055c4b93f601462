"""Several nodes: who they are is told by the environment, as Slurm and torchrun tell it.

One node needs nothing. Of several, each runs one launcher: ``srun --ntasks-per-node=1`` starts
them, and Slurm's variables say how many there are, which one this is, and where the first is. By
hand, or under another scheduler, ``NNODES``, ``NODE_RANK``, ``MASTER_ADDR`` and ``MASTER_PORT``
say it; whichever of them is set wins over Slurm.
"""

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from web2gpt.errors import ConfigError

FIRST_PORT, PORTS = 20_000, 12_000  # below the ports that the kernel gives out by itself


@dataclass(frozen=True)
class Nodes:
    """``count`` nodes, of which this is number ``rank``; ``address`` is host:port of the first.

    ``launch`` names this one start of all the nodes' launchers; the same on each of them.
    """

    count: int = 1
    rank: int = 0
    address: str = ""
    launch: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Raises ``ConfigError`` if several nodes are meant and something is missing."""
        count = environment.get("NNODES") or environment.get("SLURM_STEP_NUM_NODES") or "1"
        if count == "1":
            return cls()
        rank = environment.get("NODE_RANK") or environment.get("SLURM_NODEID")
        host = environment.get("MASTER_ADDR") or _first_host(environment)
        port = environment.get("MASTER_PORT") or _port(environment)
        if rank is None or not host or not port:
            raise ConfigError(
                f"{count} nodes, but NODE_RANK, MASTER_ADDR or MASTER_PORT is not set; set all "
                "three on each node, with the first node's name and a free port of it, or start "
                "by srun --ntasks-per-node=1"
            )
        address = f"{host}:{port}"
        return cls(int(count), int(rank), address, _launch(environment) or address)

    def share(self, processes: int) -> int:
        """Processes of a node. Raises ``ConfigError`` if the nodes' shares would differ."""
        if processes % self.count:
            raise ConfigError(
                f"{processes} processes do not spread evenly over {self.count} nodes; change the "
                "layout (parallel.tensor, pipeline, data) or the number of nodes"
            )
        return processes // self.count


def _launch(environment: Mapping[str, str]) -> str:
    """The step of the job, with srun's port: a job that is queued again has the same steps."""
    names = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_SRUN_COMM_PORT")
    return ".".join(environment[name] for name in names if name in environment)


def _port(environment: Mapping[str, str]) -> str:
    """A port that follows from the job's number, so that all nodes know it."""
    job = environment.get("SLURM_JOB_ID")
    return str(FIRST_PORT + int(job) % PORTS) if job else ""


def _first_host(environment: Mapping[str, str], ask: Callable[..., str] | None = None) -> str:
    """The address that Slurm itself reaches the step's first node by: its name may not resolve."""
    listed = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_NODELIST")
    if not listed:
        return ""
    ask = ask or _scontrol
    name = ask("show", "hostnames", listed).split()[0]
    address = re.search(r"\bNodeAddr=(\S+)", ask("--oneliner", "show", "node", name))
    return address[1] if address else name


def _scontrol(*arguments: str) -> str:
    try:
        return subprocess.run(
            ["scontrol", *arguments], capture_output=True, text=True, check=True, timeout=60
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(
            f"scontrol {' '.join(arguments)}: {error}; set MASTER_ADDR to the first node's name"
        ) from error
