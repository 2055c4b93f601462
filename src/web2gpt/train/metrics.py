"""The curves of a run: metrics.jsonl, and the same for TensorBoard.

The curves go to Weights & Biases too, if ``train.wandb_project`` names a project there. They lie
beside the run's checkpoints while it runs. Invariant: after a resume they hold each step
once, as an unbroken run's would: rows after the checkpoint are dropped, and TensorBoard's file is
written again from those that stay.
"""

import errno
import os
import shutil
import time
from itertools import takewhile
from pathlib import Path
from typing import Any

import orjson

from web2gpt.io.atomic import write_bytes
from web2gpt.train.curves import Curves
from web2gpt.train.job import CURVES, METRICS
from web2gpt.train.tracker import Row, Tracker


class Metrics:
    """``Metrics(folder, step).add({"step": 1, "loss": 3.2})``.

    ``step`` is the last whose rows stay: the checkpoint's that the run carries on from.
    """

    def __init__(self, folder: Path, step: int, tracker: Tracker | None = None):
        self._tracker = tracker
        self._rows = folder / METRICS
        kept = [row for row in read_rows(self._rows) if row["step"] <= step]
        self.losses = [row["loss"] for row in kept if row.get("loss") is not None]
        write_bytes(self._rows, b"".join(_line(row) for row in kept))
        shutil.rmtree(folder / CURVES, ignore_errors=True)
        self._curves = Curves(folder / CURVES)
        for row in kept:
            self._curves.draw(row)
        self._file = self._rows.open("ab", buffering=0)

    def close(self) -> None:
        self._file.close()
        self._curves.close()
        if self._tracker:
            self._tracker.close()

    def sync(self) -> None:
        """To be called before a checkpoint: its rows must not be lost while it stays."""
        os.fsync(self._file.fileno())

    def last_values(self) -> dict[str, Any]:
        """The last number of each column."""
        values: dict[str, Any] = {}
        for row in read_rows(self._rows):
            values.update((name, value) for name, value in row.items() if value is not None)
        return values

    def add(self, row: Row) -> None:
        """Append a row. ``step`` is required; what is no number is not drawn."""
        row = {**row, "time": round(time.time(), 3)}
        line = _line(row)
        if self._file.write(line) < len(line):  # the disk is full; what follows must not join on
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._rows))
        self._curves.draw(row)
        if self._tracker:
            self._tracker.add(row)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl, up to the first that is none.

    A kill or a power cut leaves such at the end only, after the last checkpoint's rows.
    """
    if not path.exists():
        return []
    return list(takewhile(_is_row, map(_parsed, path.read_bytes().splitlines(keepends=True))))


def _parsed(line: bytes) -> Any:
    try:
        return orjson.loads(line) if line.endswith(b"\n") else None
    except orjson.JSONDecodeError:
        return None


def _is_row(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("step"), int)


def _line(row: Row) -> bytes:
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
