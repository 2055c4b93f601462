"""The learning rate, by hand."""

import math

import pytest

from web2gpt.config.training import Optimizer, Schedule
from web2gpt.train.schedule import learning_rate

PEAK = Optimizer(lr=1.0)


def test_it_warms_up_linearly_from_the_first_step() -> None:
    schedule = Schedule(kind="constant", warmup_fraction=0.1)
    expected = [0.25, 0.5, 0.75, 1.0, 1.0]
    assert [learning_rate(step, 40, PEAK, schedule) for step in range(1, 6)] == expected
    by_steps = Schedule(kind="constant", warmup_fraction=0.5, warmup_steps=4)
    assert [learning_rate(step, 40, PEAK, by_steps) for step in range(1, 6)] == expected


def test_cosine_falls_to_the_smallest_and_stays_there() -> None:
    schedule = Schedule(kind="cosine", warmup_fraction=0.0, decay_steps=10, min_lr=0.1)
    assert learning_rate(5, 20, PEAK, schedule) == pytest.approx(0.1 + 0.9 / 2)
    assert learning_rate(1, 20, PEAK, schedule) == pytest.approx(
        0.1 + 0.9 * (1 + math.cos(math.pi / 10)) / 2
    )
    assert learning_rate(10, 20, PEAK, schedule) == learning_rate(20, 20, PEAK, schedule) == 0.1


def test_linear_falls_in_equal_steps() -> None:
    schedule = Schedule(kind="linear", warmup_fraction=0.0)
    rates = [learning_rate(step, 4, PEAK, schedule) for step in range(1, 5)]
    assert rates == [0.75, 0.5, 0.25, 0.0]


def test_the_inverse_square_root_halves_at_four_times_the_warm_up() -> None:
    schedule = Schedule(kind="inverse_sqrt", warmup_steps=10, min_lr=0.2)
    assert learning_rate(10, 9999, PEAK, schedule) == 1.0
    assert learning_rate(40, 9999, PEAK, schedule) == 0.5
    assert learning_rate(9999, 9999, PEAK, schedule) == 0.2


def test_wsd_is_stable_and_decays_in_the_end() -> None:
    schedule = Schedule(kind="wsd", warmup_steps=5, decay_fraction=0.2, min_lr=0.1)
    assert learning_rate(5, 100, PEAK, schedule) == learning_rate(80, 100, PEAK, schedule) == 1.0
    assert learning_rate(90, 100, PEAK, schedule) == pytest.approx(0.55)
    assert learning_rate(100, 100, PEAK, schedule) == pytest.approx(0.1)
