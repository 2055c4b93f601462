"""A request to stop (SIGTERM), which all ranks follow at the same step."""

import signal
from types import FrameType

import torch
import torch.distributed as dist


class StopRequest:
    """Agreed upon over gloo, so that GPUs are not waited for. Building it is collective."""

    def __init__(self) -> None:
        self._asked = False
        self._group = dist.new_group(backend="gloo")
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True

    def is_agreed(self) -> bool:
        """Whether any rank was asked to stop. Collective."""
        flag = torch.tensor(int(self._asked))
        dist.all_reduce(flag, op=dist.ReduceOp.MAX, group=self._group)
        return bool(flag)
