"""How long ranks have been silent, by a clock that the test turns."""

from pathlib import Path

import pytest

from web2gpt.train import pulse
from web2gpt.train.pulse import ASLEEP, START, Heart, Pulse, Watch


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pulse, "time", clock)
    return clock


def looked(watch: Watch, clock: Clock, seconds: float) -> float:
    """What the watch says after it has looked once a second for so long."""
    for _ in range(int(seconds)):
        clock.now += 1
        silence = watch.silence()
    return silence


def test_silence_is_counted_from_the_last_beat_of_any_rank(tmp_path: Path, clock: Clock) -> None:
    beats = Pulse.create(tmp_path / "pulse", 2)
    watch = Watch(beats)
    Heart(beats, 0).beat()
    assert looked(watch, clock, 30) == 30
    Heart(beats, 1).beat()
    assert looked(watch, clock, 4) == 4


def test_a_start_may_take_longer(tmp_path: Path, clock: Clock) -> None:
    watch = Watch(Pulse.create(tmp_path / "pulse", 2))
    assert looked(watch, clock, 100) < 0
    assert looked(watch, clock, START) == 100


def test_time_in_which_it_was_stopped_itself_does_not_count(tmp_path: Path, clock: Clock) -> None:
    beats = Pulse.create(tmp_path / "pulse", 1)
    watch = Watch(beats)
    Heart(beats, 0).beat()
    looked(watch, clock, 10)
    clock.now += 10 * ASLEEP
    assert watch.silence() == 0
    assert looked(watch, clock, 7) == 7


def test_each_rank_is_seen_at_its_step(tmp_path: Path) -> None:
    beats = Pulse.create(tmp_path / "pulse", 2)
    heart = Heart(beats, 1)
    heart.step = 13
    heart.beat()
    assert (beats.step(0), beats.step(1)) == (0, 13)
