"""Which samples a data rank computes: a function of the step and the layout alone.

Global batch b holds samples b B to (b + 1) B of the index's order, whatever the layout; micro-batch
m of data rank d takes the rows from (m data + d) times the micro-batch size.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from web2gpt.config.derive import BatchPlan
from web2gpt.parallel.engine import MicroBatch


class SampleReader(Protocol):
    """Samples ``first`` to ``first + count`` of the order, (count, T + 1); goes on in epochs."""

    def batch(self, first: int, count: int) -> npt.NDArray[np.int64]: ...


class Batches:
    """One data rank's micro-batches of each global batch, on ``device``."""

    def __init__(
        self, samples: SampleReader, plan: BatchPlan, data_rank: int, device: torch.device
    ):
        self._samples, self._plan = samples, plan
        self._data_rank, self._device = data_rank, device

    def of(self, number: int) -> Iterator[MicroBatch]:
        """The micro-batches of global batch ``number``, counted from 0."""
        start, size = number * self._plan.global_batch_size, self._plan.micro_batch_size
        for index in range(self._plan.accumulation):
            row = (index * self._plan.data + self._data_rank) * size
            rows = torch.from_numpy(np.asarray(self._samples.batch(start + row, size), np.int64))
            tokens = rows.to(self._device, non_blocking=True)  # (micro-batch, T + 1)
            yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def of_several(self, count: int) -> Iterator[MicroBatch]:
        """The micro-batches of the first ``count`` global batches."""
        for number in range(count):
            yield from self.of(number)
