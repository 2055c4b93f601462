"""What a run says to its user: rank 0 alone speaks, on the launcher's standard error.

Ranks' own standard error, with whatever DeepSpeed, NCCL and warnings print, goes to log files; the
launcher hands rank 0 a descriptor for what is meant to be read. On a terminal there is a bar too.
"""

import os
import sys
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

DESCRIPTOR = "WEB2GPT_VOICE"


class Voice:
    """``say`` prints a line, ``advance`` moves the bar. Silent on all ranks but the first."""

    def __init__(self, *, silent: bool, total: int = 0):
        descriptor = os.environ.get(DESCRIPTOR)
        self._file: IO[str] | None = None
        if not silent:
            self._file = (
                os.fdopen(int(descriptor), "w", closefd=False) if descriptor else sys.stderr
            )
        self._total = total
        self._bar: Progress | None = None

    def say(self, line: str) -> None:
        if self._bar:
            self._bar.console.print(f"train: {line}", markup=False, highlight=False, soft_wrap=True)
        elif self._file:
            try:
                print(f"train: {line}", file=self._file, flush=True)
            except OSError:  # nobody listens any more, which is no reason to end a run
                self._file = None

    def start_bar(self, step: int) -> None:
        """Show a bar, if a terminal is listening."""
        if self._file and self._file.isatty():
            columns = (
                TextColumn("train"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=Console(file=self._file), transient=True)
            self._task = self._bar.add_task("train", total=self._total, completed=step, note="")
            self._bar.start()

    def advance(self, step: int, note: str) -> None:
        if self._bar:
            self._bar.update(self._task, completed=step, note=note)

    def close(self) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = None
