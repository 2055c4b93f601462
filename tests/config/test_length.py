"""How long a run is and what each step sees, against Megatron's rule counted out step by step."""

import pytest

from web2gpt.config.length import Length
from web2gpt.config.load import parse_settings
from web2gpt.config.training import Train
from web2gpt.errors import ConfigError


def batch_after(consumed: int, start: int, increment: int, samples: int, full: int) -> int:
    """Megatron's rule: one increment more for each equal share of the ramp's samples consumed."""
    if consumed >= samples:
        return full
    return min(full, start + consumed * ((full - start) // increment) // samples * increment)


@pytest.mark.parametrize(
    ("start", "increment", "samples", "full"),
    [(2, 2, 12, 4), (4, 4, 40, 16), (16, 8, 5000, 64), (1, 1, 3, 32), (32, 32, 100, 32)],
)
def test_the_ramp_grows_as_megatrons(start: int, increment: int, samples: int, full: int) -> None:
    length = Length.of(
        Train(
            steps=400,
            global_batch_size=full,
            rampup_start=start,
            rampup_increment=increment,
            rampup_samples=samples,
        ),
        8,
    )
    consumed = 0
    for step in range(1, 401):
        assert length.first_sample(step) == consumed
        assert length.batch_size(step) == batch_after(consumed, start, increment, samples, full)
        consumed += length.batch_size(step)
    assert length.samples == consumed


def test_length_in_steps_samples_or_tokens_is_the_same_run() -> None:
    by_steps = Length.of(Train(steps=25, global_batch_size=16), 32)
    assert Length.of(Train(samples=400, global_batch_size=16), 32) == by_steps
    assert Length.of(Train(samples=385, global_batch_size=16), 32) == by_steps
    assert Length.of(Train(tokens=400 * 32, global_batch_size=16), 32) == by_steps
    assert Length.of(Train(), 32).steps == 300


def test_samples_count_through_a_ramp() -> None:
    ramp = {"global_batch_size": 4, "rampup_start": 2, "rampup_increment": 2, "rampup_samples": 12}
    assert Length.of(Train(samples=12 + 4 * 5, **ramp), 32).steps == 6 + 5
    assert Length.of(Train(samples=7, **ramp), 32).steps == 4


def test_only_one_length_can_be_given() -> None:
    with pytest.raises(ConfigError, match="not by steps = 5 and tokens = 9; set"):
        parse_settings(Train, '{"steps": 5, "tokens": 9}')


def test_ranges_of_steps_are_passed_over() -> None:
    length = Length.of(Train(skip_steps=("3-4", "9-9")), 32)
    assert [step for step in range(1, 12) if length.is_skipped(step)] == [3, 4, 9]
    for wrong in ("4", "5-3", "0-2", "a-b"):
        with pytest.raises(ConfigError, match="is no range of steps such as 120-140"):
            parse_settings(Train, f'{{"skip_steps": ["{wrong}"]}}')
