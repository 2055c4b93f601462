"""Data are read before they are asked for, each sample by one data rank, once."""

import threading
from collections.abc import Iterator
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt
import pytest
import torch

from web2gpt.config.derive import BatchPlan
from web2gpt.train.batches import AHEAD, Batches, Rows

PLAN = BatchPlan(micro_batch_size=2, data=2, accumulation=3)
PATIENCE = 60.0
CPU = torch.device("cpu")


class Reader:
    """Samples whose tokens are their number; counts what was read."""

    def __init__(self) -> None:
        self.read: list[int] = []
        self._came = threading.Condition()

    def batch(self, first: int, count: int) -> npt.NDArray[np.int64]:
        with self._came:
            self.read.append(first)
            self._came.notify_all()
        return np.repeat(np.arange(first, first + count)[:, None], 5, axis=1)

    def wait_for(self, count: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.read) >= count, PATIENCE)


def after(rows: Rows) -> Rows:
    return Rows(rows.first + PLAN.global_batch_size, PLAN)


def numbers(batches: Iterator[tuple[torch.Tensor, torch.Tensor]]) -> list[int]:
    return [int(number) for tokens, _ in batches for number in tokens[:, 0]]


@pytest.mark.parametrize("data", [1, 2, 3])
def test_data_ranks_share_a_global_batch_and_leave_nothing_out(data: int) -> None:
    plan = BatchPlan(micro_batch_size=2, data=data, accumulation=12 // (2 * data))
    ranks = [Batches(Reader(), rank, CPU) for rank in range(data)]
    found = [numbers(batches.of(Rows(24, plan))) for batches in ranks]
    assert sorted(chain.from_iterable(found)) == list(range(24, 36))


def test_targets_are_the_tokens_that_follow() -> None:
    class Counting(Reader):
        def batch(self, first: int, count: int) -> npt.NDArray[np.int64]:
            return super().batch(first, count) + np.arange(5)

    for tokens, targets in Batches(Counting(), 0, CPU).of(Rows(0, PLAN)):
        assert tokens.shape == targets.shape == (2, 4)
        assert torch.equal(targets, tokens + 1)


def test_while_one_is_computed_the_next_are_read_and_those_of_the_next_step_too() -> None:
    reader = Reader()
    batches = Batches(reader, 0, CPU, following=after)
    step = batches.of(Rows(0, PLAN))
    for taken in range(1, PLAN.accumulation + 1):
        next(step)
        reader.wait_for(min(taken + AHEAD, 2 * PLAN.accumulation))
    assert next(step, None) is None
    assert reader.read[: PLAN.accumulation + 1] == [0, 4, 8, 12], "this rank's share, in order"


def test_nothing_is_read_twice() -> None:
    reader = Reader()
    batches = Batches(reader, 1, CPU, following=after)
    steps = [Rows(number * PLAN.global_batch_size, PLAN) for number in range(5)]
    assert all(after(one) == two for one, two in pairwise(steps))
    for rows in steps:
        for _ in batches.of(rows):
            pass
    assert len(reader.read) == len(set(reader.read))
