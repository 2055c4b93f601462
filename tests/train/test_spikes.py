"""The detector of spikes, on curves whose answer is known."""

import math
from pathlib import Path

import numpy as np

from web2gpt.train.metrics import read_rows
from web2gpt.train.spikes import FEWEST, FILE, SpikeDetector, forget_spikes, report_spike


def test_it_says_nothing_before_it_has_seen_enough() -> None:
    detector = SpikeDetector()
    assert [detector.score(1.0) for _ in range(FEWEST)] == [None] * FEWEST
    assert detector.score(1.0) == 0.0


def test_noise_is_no_spike_and_a_jump_is() -> None:
    noise = np.random.default_rng(0).normal(3, 0.1, 300)
    detector = SpikeDetector()
    scores = [detector.score(float(loss)) for loss in noise]
    assert max(score for score in scores if score is not None) < 4
    score = detector.score(float(noise[-100:].mean() + 10 * noise[-100:].std()))
    assert score is not None and abs(score - 10) < 0.01


def test_what_is_no_number_is_the_highest_and_is_not_learnt() -> None:
    detector = SpikeDetector([2.0] * 50)
    assert detector.score(math.nan) == math.inf
    assert detector.score(2.0) == 0.0


def test_a_run_that_carries_on_reports_no_spike_twice(tmp_path: Path) -> None:
    forget_spikes(tmp_path, after=0)
    for step in (4, 9):
        report_spike(tmp_path, {"step": step}, ["a", "b"])
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"step":1')  # cut short by a kill
    forget_spikes(tmp_path, after=6)
    assert report_spike(tmp_path, {"step": 9}, list("abcde")) == f"a; b; c and 2 more, in {FILE}"
    assert [row["step"] for row in read_rows(tmp_path / FILE)] == [4, 9]
