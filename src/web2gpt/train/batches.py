"""Which samples a data rank computes: a function of the step and the layout alone.

A global batch holds consecutive samples of the index's order, whatever the layout; micro-batch m of
data rank d takes the rows from (m data + d) times the micro-batch size. A thread reads ahead, into
pinned memory for a GPU, so that the trainer does not wait; how long it did is counted.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from web2gpt.config.derive import BatchPlan
from web2gpt.parallel.engine import MicroBatch

AHEAD = 4  # micro-batches read before they are asked for


class SampleReader(Protocol):
    """Samples ``first`` to ``first + count`` of the order, (count, T + 1); goes on in epochs."""

    def batch(self, first: int, count: int) -> npt.NDArray[np.int64]: ...


@dataclass(frozen=True)
class Rows:
    """``plan``'s global batch that begins with sample ``first``."""

    first: int
    plan: BatchPlan

    def starts(self, data_rank: int) -> list[int]:
        """The first sample of each micro-batch of a data rank."""
        size, data = self.plan.micro_batch_size, self.plan.data
        counts = range(self.plan.accumulation)
        return [self.first + (index * data + data_rank) * size for index in counts]


class Batches:
    """One data rank's micro-batches of given global batches, on ``device``.

    ``following`` gives, from a global batch, the one that is read ahead after it. ``waited`` counts
    the seconds for which data were not there in time.
    """

    def __init__(
        self,
        samples: SampleReader,
        data_rank: int,
        device: torch.device,
        *,
        following: Callable[[Rows], Rows | None] = lambda rows: None,
        beat: Callable[[], None] = lambda: None,
    ):
        self._samples, self._data_rank, self._device = samples, data_rank, device
        self._following, self._beat = following, beat
        self._reader = ThreadPoolExecutor(1, "reader")
        self._ahead: dict[tuple[int, int], Future[Tensor]] = {}
        self.waited = 0.0

    def of(self, rows: Rows) -> Iterator[MicroBatch]:
        """The micro-batches of one global batch."""
        size = rows.plan.micro_batch_size
        starts = rows.starts(self._data_rank)
        then = self._following(rows)
        queue = deque([(start, size) for start in starts])
        if then is not None:
            queue += [(start, then.plan.micro_batch_size) for start in then.starts(self._data_rank)]
        for start in starts:
            self._read_ahead(queue)
            queue.popleft()
            began = time.perf_counter()
            tokens = self._ahead.pop((start, size)).result()
            self.waited += time.perf_counter() - began
            self._beat()
            tokens = tokens.to(self._device, non_blocking=True)  # (micro-batch, T + 1)
            yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def of_several(self, batches: list[Rows]) -> Iterator[MicroBatch]:
        """The micro-batches of several global batches."""
        for rows in batches:
            yield from self.of(rows)

    def _read_ahead(self, queue: deque[tuple[int, int]]) -> None:
        for key in list(queue)[: AHEAD + 1]:
            if key not in self._ahead:
                self._ahead[key] = self._reader.submit(self._read, *key)

    def _read(self, start: int, count: int) -> Tensor:
        rows = torch.from_numpy(np.asarray(self._samples.batch(start, count), np.int64))
        return rows.pin_memory() if self._device.type == "cuda" else rows
