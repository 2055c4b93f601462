"""One rank: ``python -m web2gpt.train.worker RUN.JSON LAUNCHER_PID``, started by the launcher.

It dies with the launcher. Its error, if any, goes to the log folder with the time, so that the
launcher can show the first one. Asked with SIGUSR2, it writes its threads' stacks beside it, even
while it waits inside a collective.
"""

import ctypes
import faulthandler
import os
import signal
import sys
import time
import warnings
from dataclasses import asdict
from pathlib import Path

from web2gpt.io.atomic import write_json
from web2gpt.train.fault import Fault
from web2gpt.train.job import PULSE, Job
from web2gpt.train.launcher import RENDEZVOUS, SPEECHLESS, STOPPED
from web2gpt.train.stacks import stack_file
from web2gpt.train.stop import Request

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run this rank; the exit code tells the launcher how it went."""
    path, launcher = Path(sys.argv[1]), int(sys.argv[2])
    die_with(launcher)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher tells when to stop
    request = Request()
    job, rank = Job.read(path), int(os.environ["RANK"])
    tell_stack_when_asked(job.work / "logs", rank)
    try:
        finished = run(job, rank, request)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the launcher shall tell it
        os._exit(tell(error, rank, job.work / "logs"))  # peers may be gone: do not wait for them
    sys.stderr.flush()
    os._exit(0 if finished else STOPPED)


def run(job: Job, rank: int, request: Request) -> bool:
    """Join the others and train."""
    warnings.filterwarnings("ignore", message=".*(autograd kernel was not registered|deprecated).*")
    from web2gpt.parallel.engine import check_device
    from web2gpt.parallel.processes import join, meeting_by_address, meeting_by_file, own_device
    from web2gpt.train.pulse import Heart, Pulse
    from web2gpt.train.trainer import train

    stage = job.stage
    check_device(stage.train.precision, own_device())
    size, address = int(os.environ["WORLD_SIZE"]), os.environ["WEB2GPT_MEETING"]
    if address:
        store = meeting_by_address(address, rank, size)
    else:
        store = meeting_by_file(job.work / RENDEZVOUS, rank, size)
    device = join(store, rank, size, threads=stage.train.threads)
    heart = Heart(Pulse(job.work / PULSE), int(os.environ["LOCAL_RANK"]))
    return train(job, device, request, heart)


def tell(error: BaseException, rank: int, logs: Path) -> int:
    """Leave the error for the launcher; gives the exit code, which tells when that cannot be."""
    fault = Fault.of(error)
    report = {"time": time.time(), "rank": rank, **asdict(fault)}
    try:
        print(fault.message, file=sys.stderr, flush=True)
        write_json(logs / f"rank_{rank:04d}.error.json", report)
    except OSError:
        return SPEECHLESS
    return 1


def tell_stack_when_asked(logs: Path, rank: int) -> None:
    """Have SIGUSR2 write the stacks of all threads to the rank's file."""
    file = stack_file(logs, rank).open("w")
    faulthandler.register(signal.SIGUSR2, file=file, all_threads=True)


def die_with(launcher: int) -> None:
    """Have the kernel kill this process when the launcher dies, or end if it already has."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher:
        sys.exit(1)


if __name__ == "__main__":
    main()
