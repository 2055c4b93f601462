"""A run's curves for TensorBoard: each row of metrics is one event, with all of its numbers.

Written by the caller itself. tensorboardX's usual writer leaves it to a thread, which a full disk
ends; the run would then wait for ever for room in the thread's queue.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.summary_pb2 import Summary

FLUSH = 10.0  # seconds that a row may wait in memory; metrics.jsonl has it at once


class Curves:
    """``Curves(folder).draw({"step": 1, "time": 1.7e9, "loss": 3.2})``: a file of its own."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self._events = EventsWriter(str(folder / "events"))
        self._flushed = time.monotonic()

    def draw(self, row: Mapping[str, Any]) -> None:
        """Add a row; what is no number is left out."""
        values = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in row.items()
            if name not in ("step", "time") and isinstance(value, int | float)
        ]
        summary = Summary(value=values)
        self._events.write_event(Event(wall_time=row["time"], step=row["step"], summary=summary))
        if time.monotonic() - self._flushed > FLUSH:
            self._events.flush()
            self._flushed = time.monotonic()

    def close(self) -> None:
        self._events.close()
