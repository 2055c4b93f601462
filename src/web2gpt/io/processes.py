"""Processes of this host, told apart for certain: a number alone may belong to another by now."""

import os
from pathlib import Path


def started(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty if it is gone or a zombie."""
    fields = _stat(pid)
    return "" if not fields or fields[0] in "ZX" else fields[19]


def ancestors() -> list[tuple[int, str]]:
    """Parent, grandparent and so on, each with its start time, up to the first process.

    A process whose workflow dies is handed to another parent: this list then changes.
    """
    line = []
    pid = os.getppid()
    while pid > 1 and (fields := _stat(pid)):
        line.append((pid, fields[19]))
        pid = int(fields[1])
    return line


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on; none if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
