"""Progress of long work: a bar on a terminal, a line every so often in a log."""

import sys
import time
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

INTERVAL = 10.0  # seconds between lines in a log


class ProgressLine:
    """``with ProgressLine("extract", total=None) as progress: progress.advance()``.

    Writes to standard error. ``note`` is a short text shown beside the count.
    """

    def __init__(self, title: str, *, unit: str = "", total: int | None = None):
        self.title, self.unit, self.total = title, unit, total
        self.done = 0
        self.note = ""
        self._start = self._last = time.monotonic()
        self._bar: Progress | None = None
        if sys.stderr.isatty():
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}", markup=False),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(title, total=total, note="")

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if self._bar:
            self._bar.stop()

    def advance(self, count: int = 1, note: str | None = None) -> None:
        self.done += count
        self.note = self.note if note is None else note
        if self._bar:
            self._bar.update(self._task, completed=self.done, note=self.note)
        elif time.monotonic() - self._last >= INTERVAL:
            self._last = time.monotonic()
            print(self._line(), file=sys.stderr, flush=True)

    def _line(self) -> str:
        rate = self.done / (self._last - self._start)
        of = f" of {self.total:,}" if self.total is not None else ""
        note = f", {self.note}" if self.note else ""
        return f"{self.title}: {self.done:,}{of} {self.unit}, {rate:,.1f} a second{note}"
