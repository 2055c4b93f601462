"""How a run ends that cannot go on, or was asked not to: what it says, and its exit code."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from runs import Run, is_gone, ranks_of
from tiny import Data, settings

SINGLE = {"parallel": {"tensor": 1}}
HANG_TIMEOUT = 6.0
CHECKPOINT = 4


def test_when_a_rank_fails_its_error_is_the_one_shown_and_none_stays(
    data: Data, tmp_path: Path
) -> None:
    run = Run(data, tmp_path, "raise:3")
    process = run.start(settings())
    run.wait_for(process, lambda: len(ranks_of(process)) == 2)
    ranks = ranks_of(process)
    assert run.end(process) == 1
    assert "rank 1 failed" in run.said and "RuntimeError: planted" in run.said
    assert "rank 0 failed" not in run.said and "Connection" not in run.said
    assert all(is_gone(pid) for pid in ranks)


def test_bad_steps_in_a_row_end_it_with_step_samples_and_the_first_bad_parameter(
    data: Data, tmp_path: Path
) -> None:
    run = Run(data, tmp_path, "nan:2,nan:3,nan:4")
    chosen = settings(max_bad_steps=3) | SINGLE
    said = run.finish(chosen, code=1)
    assert "3 steps in a row, up to step 4 (samples 6 to 7: tiny " in said
    assert "the first bad parameter is h.1.mlp.c_fc.weight (its gradient; 1 in all)" in said
    assert "rank_0000" not in said and "Traceback" not in said
    again = run.finish(chosen, code=1, attempt=2)
    assert again == said[said.index("web2gpt: ") :], "a retry met the same error, with a start"


def test_the_checkpoint_that_is_being_written_when_a_run_ends_by_its_own_error_stays(
    data: Data, tmp_path: Path
) -> None:
    run = Run(data, tmp_path, f"nan:{CHECKPOINT + 1},slow:{CHECKPOINT}")
    said = run.finish(settings(max_bad_steps=1) | SINGLE, code=1)
    assert f"The last checkpoint is of step {CHECKPOINT}." in said
    assert run.has(f"step_{CHECKPOINT:08d}") and not run.has(".tmp-*")


def test_what_a_killed_run_left_is_gone_when_the_next_one_is_done(
    data: Data, tmp_path: Path
) -> None:
    run, chosen = Run(data, tmp_path), settings(steps=4, keep_last=1) | SINGLE
    run.finish(chosen)
    (folder,) = run.identities
    shutil.copytree(run.checkpoint, folder / "step_00000002")
    (folder / ".tmp-00000000-metrics.jsonl").write_text("half")
    shutil.rmtree(run.folder / "train")  # what it published
    run.finish(chosen)
    assert not run.has(".tmp-*") and not run.has("step_00000002") and run.has("step_00000004")


@pytest.mark.long
def test_a_learning_rate_beyond_reason_ends_it_too(data: Data, tmp_path: Path) -> None:
    chosen = settings(max_bad_steps=3) | SINGLE | {"optimizer": {"lr": 1e30}}
    said = Run(data, tmp_path).finish(chosen | {"schedule": {"warmup_fraction": 0.0}}, code=1)
    assert "3 steps in a row, up to step 4 (samples 6 to 7: tiny " in said
    assert "the first bad parameter is" in said


def test_weights_that_compute_nothing_are_no_result(data: Data, tmp_path: Path) -> None:
    chosen = settings(steps=3) | SINGLE | {"optimizer": {"lr": 1e18}}
    run = Run(data, tmp_path)
    said = run.finish(chosen | {"schedule": {"warmup_fraction": 0.0}}, code=1)
    assert " nan after the last step, 3: with these weights nothing" in said
    assert "perplexity nan" in run.said


@pytest.mark.long
def test_when_its_time_is_over_it_saves_and_leaves_but_never_without_a_step(
    data: Data, tmp_path: Path
) -> None:
    chosen = settings(steps=3) | SINGLE
    whole, parts = Run(data, tmp_path / "whole"), Run(data, tmp_path / "parts")
    whole.finish(chosen)
    chosen["train"]["exit_after"] = 1e-6
    codes = [parts.end(parts.start(chosen)) for _ in range(3)]
    assert codes == [75, 75, 0], parts.said
    assert parts.curve() == whole.curve()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=["TERM", "USR1"])
@pytest.mark.parametrize("begun", [0, 1, 2])
def test_asked_to_stop_before_it_listens_it_leaves_with_75(
    data: Data, tmp_path: Path, begun: int, number: signal.Signals
) -> None:
    """As the launcher alone, as one rank and as two are there."""
    run = Run(data, tmp_path)
    process = run.start(settings())
    run.wait_for(process, lambda: run.listens(process) and len(ranks_of(process)) >= begun)
    process.send_signal(number)
    assert run.end(process) == 75, run.said


@pytest.mark.long
def test_a_job_that_was_put_to_sleep_is_not_hung(data: Data, tmp_path: Path) -> None:
    """As ``scontrol suspend`` does: all processes stopped, for longer than the watchdog waits."""
    run = Run(data, tmp_path)
    process = run.start(settings(hang_timeout=HANG_TIMEOUT))
    run.wait_for(process, lambda: run.steps_done() >= 2)
    everyone = [process.pid, *ranks_of(process)]
    for pid in everyone:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(HANG_TIMEOUT + 1)
    for pid in everyone:
        os.kill(pid, signal.SIGCONT)
    assert run.end(process) == 0, run.said
