"""Starts one process a rank on this node, and sees to it that they live and die together.

When a rank fails, the others are ended within seconds and its error is shown: the first by date,
since the others then fail for want of it. When this process dies, however suddenly, the kernel
kills the ranks. Rank 0 writes to our stderr; each other has a log file in the work folder.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from web2gpt.config.derive import world_size
from web2gpt.errors import Web2gptError
from web2gpt.io.atomic import read_json
from web2gpt.train.job import Job
from web2gpt.train.nodes import Nodes

POLL = 0.1  # seconds between looks at the ranks
GRACE = 2.0  # seconds that ranks get to end after another one failed
STOPPED = 75  # a rank's exit code after a request to stop, everything saved
RENDEZVOUS = "rendezvous"


class RankError(Web2gptError):
    """A rank failed."""


@dataclass
class Ranks:
    """The running ranks of this node."""

    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def codes(self) -> dict[int, int | None]:
        return {rank: process.poll() for rank, process in self.processes.items()}

    def end(self) -> None:
        """End all that still run: asked first, then killed."""
        deadline = time.monotonic() + GRACE
        while None in self.codes().values() and time.monotonic() < deadline:
            time.sleep(POLL)
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()


def run_ranks(job: Job, nodes: Nodes) -> bool:
    """Run the job's ranks of this node to their end. True if done, False if stopped on request.

    Raises ``RankError`` with the first failure.
    """
    (job.work / RENDEZVOUS).unlink(missing_ok=True)
    logs = job.work / "logs"
    logs.mkdir(exist_ok=True)
    for path in logs.glob("*.error.json"):
        path.unlink()
    path = job.write()
    ranks = Ranks()
    with _forwarded_signals(ranks):
        try:
            for rank, environment in _environments(job, nodes):
                ranks.processes[rank] = _start(rank, environment, path, logs)
            return _wait(ranks, logs)
        finally:
            ranks.end()


def _wait(ranks: Ranks, logs: Path) -> bool:
    while True:
        codes = ranks.codes()
        failed = {rank: code for rank, code in codes.items() if code not in (None, 0, STOPPED)}
        if failed:
            ranks.end()
            raise RankError(_explain(failed, logs))
        if None not in codes.values():
            return STOPPED not in codes.values()
        time.sleep(POLL)


def _explain(failed: dict[int, int], logs: Path) -> str:
    """The first failure: of a rank that was killed, else of the rank that raised first."""
    for rank, code in failed.items():
        if code < 0:
            name = signal.Signals(-code).name
            return f"train: rank {rank} was ended by {name}; run again to carry on"
    errors = sorted((read_json(path)["time"], path) for path in logs.glob("*.error.json"))
    if not errors:
        rank, code = next(iter(failed.items()))
        return f"train: rank {rank} ended with exit code {code}; its log is in {logs}"
    error = read_json(errors[0][1])
    message: str = error["message"]
    return message if error["is_known"] else f"train: rank {error['rank']} failed\n{message}"


def _environments(job: Job, nodes: Nodes) -> Iterator[tuple[int, dict[str, str]]]:
    size = world_size(job.stage.parallel)
    share = size // nodes.count
    threads = str(job.stage.train.threads)
    for local in range(share):
        rank = nodes.rank * share + local
        environment = {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(local),
            "WORLD_SIZE": str(size),
            "LOCAL_SIZE": str(share),  # what DeepSpeed takes for the number of CPU devices
            "WEB2GPT_MEETING": nodes.address,
            "DS_ACCELERATOR": job.device,
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
        }
        if nodes.count == 1:
            environment["GLOO_SOCKET_IFNAME"] = "lo"
        yield rank, environment


def _start(
    rank: int, environment: dict[str, str], path: Path, logs: Path
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "web2gpt.train.worker", str(path), str(os.getpid())]
    with (logs / f"rank_{rank:04d}.log").open("wb") as log:
        stderr: IO[bytes] | int = sys.stderr.fileno() if rank == 0 else log
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=stderr
        )


@contextmanager
def _forwarded_signals(ranks: Ranks) -> Iterator[None]:
    """A request to stop goes to the ranks, which save a checkpoint and end; a second one kills."""
    asked = False

    def forward(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        for process in ranks.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGKILL if asked else signal.SIGTERM)
        asked = True

    before = {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
