"""Requests to stop (SIGTERM, SIGUSR1, or time running out), which all ranks follow together."""

import signal
import time
from types import FrameType

import torch
import torch.distributed as dist

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)


class Request:
    """Remembers that this process was asked to stop, from the moment it is made."""

    def __init__(self) -> None:
        self.asked = False
        for number in SIGNALS:
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


class Agreement:
    """What all ranks know at the end of a step, over gloo, so that GPUs are not waited for.

    ``minutes``: how long the run may take, from the first call on: however short, a step is made
    and saved. Building it is collective.
    """

    def __init__(self, request: Request, minutes: float | None):
        self._request, self._minutes = request, minutes
        self._end: float | None = None
        self._group = dist.new_group(backend="gloo")

    def reach(self, *, writing: bool) -> tuple[bool, bool]:
        """Whether any rank was asked to stop, and whether any is still ``writing``. Collective."""
        now = time.monotonic()
        late = self._end is not None and now > self._end
        if self._end is None and self._minutes is not None:
            self._end = now + 60 * self._minutes
        flags = torch.tensor([self._request.asked or late, writing], dtype=torch.uint8)
        dist.all_reduce(flags, op=dist.ReduceOp.MAX, group=self._group)
        stop, busy = flags.tolist()
        return bool(stop), bool(busy)
