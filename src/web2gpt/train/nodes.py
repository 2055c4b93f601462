"""Several nodes: who they are is told by the environment, as torchrun and Slurm tell it.

One node needs nothing. Of several, each runs the same command, with ``NNODES``, ``NODE_RANK``,
``MASTER_ADDR`` and ``MASTER_PORT`` set; under srun the first two are taken from Slurm.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from web2gpt.errors import ConfigError


@dataclass(frozen=True)
class Nodes:
    """``count`` nodes, of which this is number ``rank``; ``address`` is host:port of the first."""

    count: int = 1
    rank: int = 0
    address: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Raises ``ConfigError`` if several nodes are meant and something is missing."""
        count = environment.get("NNODES") or environment.get("SLURM_STEP_NUM_NODES") or "1"
        if count == "1":
            return cls()
        rank = environment.get("NODE_RANK") or environment.get("SLURM_NODEID")
        host, port = environment.get("MASTER_ADDR"), environment.get("MASTER_PORT")
        if rank is None or not host or not port:
            raise ConfigError(
                f"{count} nodes, but NODE_RANK, MASTER_ADDR or MASTER_PORT is not set; set all "
                "three on each node, with the first node's name and a free port of it"
            )
        return cls(int(count), int(rank), f"{host}:{port}")
