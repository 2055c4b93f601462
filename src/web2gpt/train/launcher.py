"""Starts one process a rank on this node, and sees to it that they live and die together.

When a rank fails, the others are ended within seconds and its error is shown: the first by date,
since the others then fail for want of it. When all are silent for too long, the stacks of all are
shown and they are ended. When this process dies, however suddenly, the kernel kills the ranks. Each
rank has a log file in the work folder; rank 0 is given our stderr for what it has to say.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from web2gpt.config.derive import world_size
from web2gpt.errors import Web2gptError
from web2gpt.io.atomic import read_json
from web2gpt.train.job import PULSE, Job
from web2gpt.train.nodes import Nodes
from web2gpt.train.pulse import Pulse, Watch
from web2gpt.train.stacks import stacks_of
from web2gpt.train.voice import DESCRIPTOR

POLL = 0.1  # seconds between looks at the ranks
LOOKS_AT_RUN = 10  # looks at the ranks between looks at the run as a whole
GRACE = 2.0  # seconds that ranks get to end after another one failed
STOPPED = 75  # a rank's exit code after a request to stop, everything saved
SPEECHLESS = 74  # of one that failed and could not write down why: sysexits' EX_IOERR
RENDEZVOUS = "rendezvous"
REQUESTS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class RankError(Web2gptError):
    """A rank failed."""


class StoppedError(Web2gptError):
    """A request to stop came before any rank was started."""

    exit_code = STOPPED


class LostRankError(RankError):
    """A rank was killed, hung, or met what it does not know: another try may well succeed."""


@dataclass
class Ranks:
    """The running ranks of this node, by their number in the run."""

    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    asked: bool = False  # to stop

    def codes(self) -> dict[int, int | None]:
        """Exit codes; a rank that a request to stop ended before it listened has stopped."""
        found = {rank: process.poll() for rank, process in self.processes.items()}
        return {rank: STOPPED if self._is_early(code) else code for rank, code in found.items()}

    @property
    def stopped_early(self) -> bool:
        """Whether a rank was ended before it listened: then none has begun, nor can."""
        return any(self._is_early(process.poll()) for process in self.processes.values())

    def _is_early(self, code: int | None) -> bool:
        return self.asked and code in (-signal.SIGTERM, -signal.SIGUSR1)

    def send(self, number: int) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(number)

    def end(self) -> None:
        """End all that still run: given a moment, then killed."""
        deadline = time.monotonic() + GRACE
        while None in self.codes().values() and time.monotonic() < deadline:
            time.sleep(POLL)
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()


def run_ranks(
    job: Job, nodes: Nodes, ranks: Ranks, is_over: Callable[[], bool] = lambda: False
) -> bool:
    """Run the job's ranks of this node to their end. True if done, False if stopped on request.

    ``is_over`` tells, about once a second, that the run is done without these ranks: they end.
    Raises ``RankError`` with the first failure.
    """
    (job.work / RENDEZVOUS).unlink(missing_ok=True)
    logs = job.work / "logs"
    logs.mkdir(exist_ok=True)
    for path in [*logs.glob("*.error.json"), *logs.glob("*.stack")]:
        path.unlink()
    path = job.write()
    pulse = Pulse.create(job.work / PULSE, world_size(job.stage.parallel) // nodes.count)
    try:
        for rank, environment in _environments(job, nodes):
            if ranks.asked:
                return False
            ranks.processes[rank] = _start(rank, environment, path, logs)
        return _wait(ranks, logs, pulse, job.stage.train.hang_timeout, is_over)
    finally:
        ranks.end()


def _wait(
    ranks: Ranks, logs: Path, pulse: Pulse, patience: float, is_over: Callable[[], bool]
) -> bool:
    looks, watch = 0, Watch(pulse)
    while True:
        if ranks.stopped_early:
            return False
        codes = ranks.codes()
        failed = {rank: code for rank, code in codes.items() if code not in (None, 0, STOPPED)}
        if failed:
            ranks.end()
            raise _failure(failed, logs)
        if None not in codes.values():
            return STOPPED not in codes.values()
        if patience and watch.silence() > patience:
            raise LostRankError(_explain_silence(ranks, logs, pulse))
        looks += 1
        if looks % LOOKS_AT_RUN == 0 and is_over():
            return True
        time.sleep(POLL)


def _explain_silence(ranks: Ranks, logs: Path, pulse: Pulse) -> str:
    """Where each rank stands; then none is left."""
    stacks = stacks_of(ranks.processes, logs)
    seen = {rank: pulse.step(local) for local, rank in enumerate(ranks.processes)}
    for process in ranks.processes.values():
        process.kill()
    parts = [f"rank {rank}, last seen at step {seen[rank]:,}:\n{stacks[rank]}" for rank in seen]
    return (
        f"train: no rank has made progress for {pulse.silence():.0f} s (train.hang_timeout); "
        "run again to carry on from the last checkpoint\n" + "\n".join(parts)
    )


def _failure(failed: dict[int, int], logs: Path) -> RankError:
    """The first failure: of a rank that was killed, else of the rank that raised first."""
    for rank, code in failed.items():
        if code < 0:
            name = signal.Signals(-code).name
            return LostRankError(f"train: rank {rank} was ended by {name}; run again to carry on")
    errors = sorted((read_json(path)["time"], path) for path in logs.glob("*.error.json"))
    if not errors and SPEECHLESS in failed.values():
        return RankError(
            f"train: {logs} cannot be written to, not even to say why. Checkpoints stand as they "
            "were: make room, and run again to carry on."
        )
    if not errors:
        rank, code = next(iter(failed.items()))
        return LostRankError(
            f"train: rank {rank} ended with exit code {code}; its log is in {logs}"
        )
    error = read_json(errors[0][1])
    if error["is_known"]:
        return RankError(error["message"])
    return LostRankError(f"train: rank {error['rank']} failed\n{error['message']}")


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
    voice = os.dup(sys.stderr.fileno())
    if rank == 0:
        environment[DESCRIPTOR] = str(voice)
    with (logs / f"rank_{rank:04d}.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(voice,) if rank == 0 else (),
        )
    os.close(voice)
    return process


@contextmanager
def following_requests() -> Iterator[Ranks]:
    """Ranks to be filled, which a request to stop is passed on to: they save and end.

    A second interrupt from the keyboard kills them. While there are none, as when the work folder
    is waited for, a request raises ``StoppedError`` wherever we are.
    """
    ranks = Ranks()

    def forward(number: int, frame: FrameType | None) -> None:
        if not ranks.processes:
            raise StoppedError("train: stopped on request before it began; run again")
        kills = ranks.asked and number == signal.SIGINT
        ranks.asked = True
        ranks.send(signal.SIGKILL if kills else signal.SIGTERM)

    before = {number: signal.signal(number, forward) for number in REQUESTS}
    try:
        yield ranks
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
