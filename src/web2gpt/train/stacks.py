"""Where hung ranks stand: the stacks that they write when asked, wherever they wait.

faulthandler writes from the signal's handler itself, so it needs no turn of the interpreter.
"""

import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

WAIT = 3.0  # seconds for all to have written
SETTLE = 0.2  # seconds after that, for their last lines


def stack_file(logs: Path, rank: int) -> Path:
    return logs / f"rank_{rank:04d}.stack"


def stacks_of(processes: Mapping[int, subprocess.Popen[bytes]], logs: Path) -> dict[int, str]:
    """Each rank's main thread, innermost call first, as it stands now."""
    for process in processes.values():
        if process.poll() is None:
            process.send_signal(signal.SIGUSR2)
            process.send_signal(signal.SIGCONT)  # it may have been stopped
    deadline = time.monotonic() + WAIT
    files = {rank: stack_file(logs, rank) for rank in processes}
    while time.monotonic() < deadline and not all(map(_is_written, files.values())):
        time.sleep(0.05)
    time.sleep(SETTLE)
    return {rank: _main_thread(path) for rank, path in files.items()}


def _is_written(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _main_thread(path: Path) -> str:
    if not _is_written(path):
        return "  no answer"
    parts = path.read_text(errors="replace").split("\n\n")
    return next((part for part in parts if part.startswith("Current thread")), parts[-1]).rstrip()
