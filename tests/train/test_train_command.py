"""The command train, by its processes: it ends the same whatever happens to them on the way."""

import os
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from runs import PATIENCE, Run, is_gone, ranks_of
from safetensors.numpy import load_file
from tiny import NAN_AT, PLANTED, SKIPPED, SPIKE_AT, STEPS, Data, settings

SMALL = 100_000  # bytes: less than a rank's file in a checkpoint


def test_it_trains_without_a_compiler(unbroken: Run) -> None:
    losses = unbroken.losses()
    assert len(losses) == STEPS - len(SKIPPED) and losses[-1] < losses[0]
    assert unbroken.checkpoint.joinpath("index.json").exists()
    assert not (unbroken.folder / "extensions").exists(), "something was compiled"


def test_every_validation_set_has_its_curve(unbroken: Run) -> None:
    rows = [row for row in unbroken.curve() if "valid_loss" in row]
    assert [row["step"] for row in rows] == [12, STEPS]
    assert all(row["valid_loss"] != row["valid_loss_held"] > 0 for row in rows)


def test_the_batch_ramps_up_and_ranges_are_passed_over(unbroken: Run) -> None:
    rows = {row["step"]: row for row in unbroken.curve() if "global_batch_size" in row}
    assert [rows[step]["global_batch_size"] for step in (1, 6, 7, STEPS)] == [2, 2, 4, 4]
    assert rows[6]["samples"] == 12 and rows[STEPS]["samples"] == 12 + 18 * 4
    assert not rows.keys() & set(SKIPPED)
    assert unbroken.done["tokens"] == 32 * (12 + 16 * 4)


def test_a_gradient_that_is_no_number_is_counted_and_not_applied(unbroken: Run) -> None:
    bad = [row for row in unbroken.curve() if row.get("skipped")]
    assert [(row["step"], row["grad_norm"], row["skipped_steps"]) for row in bad] == [
        (NAN_AT, None, 1)
    ]
    assert f"step {NAN_AT}: loss" in unbroken.said and "not applied (1 in a row" in unbroken.said
    assert unbroken.done["skipped_steps"] == 1


def test_a_loss_spike_is_reported_with_the_documents_of_its_batch(unbroken: Run) -> None:
    (folder,) = unbroken.identities
    (spike,) = map(orjson.loads, (folder / "spikes.jsonl").read_bytes().splitlines())
    assert spike["step"] == SPIKE_AT and spike["deviations"] > 6
    assert spike["first_sample"] == 12 + 16 * 4
    assert spike["documents"] and f"step {SPIKE_AT}: loss" in unbroken.said
    assert all(name.startswith("tiny ") for name in spike["documents"])


def test_a_line_says_speed_memory_and_where_the_time_goes(unbroken: Run) -> None:
    (line,) = [line for line in unbroken.said.splitlines() if f"step {STEPS}/{STEPS}" in line]
    for words in ("samples", "tokens/s", "TFLOP/s", "memory", "peak", "skipped 1", "data"):
        assert words in line
    assert re.search(r"\(MFU [\d.]+% of 0\.001\)", line)
    for part in ("forward", "backward", "optimizer"):
        assert f"{part} " in line
    assert "DeepSpeed" not in unbroken.said and "parameters " in unbroken.said


def test_whatever_happens_to_it_it_ends_as_if_nothing_had_happened(
    data: Data, unbroken: Run, tmp_path: Path
) -> None:
    run = Run(data, tmp_path, PLANTED)
    for attack in (stop_it, kill_a_rank, fill_the_disk, hang_a_rank, kill_all):
        attack(run)
    assert "carries on from" in run.finish(settings())
    assert run.curve() == unbroken.curve()
    assert not run.has(".tmp-*")
    for name in ("weight/wte.weight", "exp_avg/wte.weight"):
        assert tensor(run, name) == tensor(unbroken, name)


def stop_it(run: Run) -> None:
    """In the middle of the ramp-up, right after a step that was not applied."""
    process = run.start(settings())
    run.wait_for(process, lambda: run.steps_done() >= NAN_AT)
    process.send_signal(signal.SIGUSR1)
    assert run.end(process) == 75 and "run again to carry on" in run.said


def kill_a_rank(run: Run) -> None:
    process = run.start(settings())
    run.wait_for(process, lambda: len(ranks_of(process)) == 2)
    os.kill(ranks_of(process)[1], signal.SIGKILL)
    assert run.end(process) == 1 and "rank 1 was ended by SIGKILL" in run.said


def fill_the_disk(run: Run) -> None:
    before = sorted(run.folder.glob("checkpoints/*/step_*"))
    assert run.end(run.start(settings(), largest_file=SMALL)) == 1
    assert "cannot be written" in run.said and "make room), and run again" in run.said
    assert sorted(run.folder.glob("checkpoints/*/step_*")) == before
    assert not run.has(".tmp-*"), "what was written in vain still fills the disk"


def hang_a_rank(run: Run) -> None:
    waits = settings(hang_timeout=4, async_checkpoint=False)
    process = run.start(waits, also="hang:13")
    assert run.end(process) == 1 and "no rank has made progress" in run.said
    first, second = run.said.split("rank 0, last seen at step 13")[1].split("rank 1, last seen at")
    assert "reach" in first or "all_reduce" in first, "rank 0 waits in a collective"
    assert "sitecustomize.py" in second, "rank 1 sleeps in what was planted"
    assert run.has("step_00000012")


def kill_all(run: Run) -> None:
    """The launcher, with no chance to do anything, while a checkpoint is being written."""
    process = run.start(settings())
    run.wait_for(process, lambda: run.has(".tmp-step_00000016"))
    ranks = ranks_of(process)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + PATIENCE
    while not all(is_gone(pid) for pid in ranks):
        assert time.monotonic() < deadline, "ranks outlive the launcher"
        time.sleep(0.01)


def tensor(run: Run, key: str) -> list[Any]:
    values: list[Any] = load_file(run.checkpoint / "tensor_01_pipeline_00.safetensors")[
        key
    ].tolist()
    return values


def test_another_layout_and_other_intervals_carry_on(
    data: Data, unbroken: Run, tmp_path: Path
) -> None:
    run = Run(data, tmp_path / "other", f"spike:{SPIKE_AT}")
    shutil.copytree(unbroken.folder / "checkpoints", run.folder / "checkpoints")
    for step in (20, STEPS):
        shutil.rmtree(run.identities[0] / f"step_{step:08d}")
    damage(run.identities[0] / "step_00000016")
    single = settings(eval_interval=4, micro_batch_size=1, keep_last=1)
    said = run.finish(single | {"parallel": {"tensor": 1}})
    assert "step_00000012" in said and len(run.identities) == 1
    assert run.losses() == pytest.approx(unbroken.losses(), rel=1e-6)
    kept = sorted(path.name for path in run.identities[0].glob("*step_*"))
    assert kept == ["damaged-step_00000016", f"step_{STEPS:08d}"]


def damage(checkpoint: Path) -> None:
    with next(checkpoint.glob("tensor_*")).open("r+b") as file:
        file.seek(-100, os.SEEK_END)
        file.write(b"x" * 100)


@pytest.mark.long
@pytest.mark.parametrize("layout", [{"pipeline": 2}, {"data": 2, "zero": 3}, {"zero": 0}], ids=str)
def test_ramp_bad_step_and_spike_are_the_same_under_other_layouts(
    data: Data, unbroken: Run, tmp_path: Path, layout: dict[str, int]
) -> None:
    run = Run(data, tmp_path, PLANTED)
    chosen = settings(micro_batch_size=1, timers=True) | {"parallel": layout}
    run.finish(chosen)
    assert run.losses() == pytest.approx(unbroken.losses(), rel=1e-5)
    assert run.done["skipped_steps"] == 1
