"""What a run may start from, by real runs: another's checkpoint, its weights, Hugging Face's."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import Run
from tiny import BATCH, LENGTH, STEPS, Data, settings

from web2gpt.tokens.samples import Samples

SINGLE = {"parallel": {"tensor": 1}}
BRANCHED_AT, BRANCH_BATCH = 12, 8


def extension(origin: Run) -> dict[str, Any]:
    start = {"continue_from": str(origin.checkpoint), "wandb_project": "tiny"}
    return settings(steps=STEPS + 2, checkpoint_interval=100, **start) | SINGLE


def branch(origin: Run) -> dict[str, Any]:
    start = str(origin.checkpoint.with_name(f"step_{BRANCHED_AT:08d}"))
    sizes = {"rampup_start": None, "skip_steps": [], "global_batch_size": BRANCH_BATCH}
    chosen = settings(steps=14, continue_from=start, continue_mode="branch", **sizes) | SINGLE
    return chosen | {"optimizer": {"lr": 5e-4}, "schedule": {"kind": "constant"}}


def weights(origin: Run) -> dict[str, Any]:
    start = {"continue_from": str(origin.checkpoint), "continue_mode": "weights"}
    return settings(steps=1, **start) | SINGLE | {"run": {"seed": 5}}


@pytest.fixture(scope="module")
def runs(
    data: Data, unbroken: Run, tmp_path_factory: pytest.TempPathFactory
) -> dict[Callable[[Run], dict[str, Any]], Run]:
    """Runs that start from the unbroken one, beside each other."""
    made, processes = {}, []
    for kind in (extension, branch, weights):
        made[kind] = run = Run(data, tmp_path_factory.mktemp(kind.__name__), stand_ins=True)
        processes.append(run.start(kind(unbroken)))
    for run, process in zip(made.values(), processes, strict=True):
        assert run.end(process) == 0, run.said
    return made


Runs = dict[Callable[[Run], dict[str, Any]], Run]


def test_an_extension_is_the_same_run_longer(runs: Runs, unbroken: Run) -> None:
    run = runs[extension]
    assert f"carries on from {unbroken.checkpoint}" in run.said
    rows = [row for row in run.curve() if "loss" in row]
    assert [row["step"] for row in rows] == [STEPS + 1, STEPS + 2]
    assert run.done["tokens"] == unbroken.done["tokens"] + 2 * BATCH * LENGTH
    assert run.done["skipped_steps"] == 1


def test_a_branch_goes_on_with_the_data_under_other_settings(runs: Runs, unbroken: Run) -> None:
    run = runs[branch]
    rows = [row for row in run.curve() if "loss" in row]
    at = next(row for row in unbroken.curve() if row["step"] == BRANCHED_AT and "loss" in row)
    assert [row["step"] for row in rows] == [BRANCHED_AT + 1, BRANCHED_AT + 2]
    assert [row["samples"] for row in rows] == [
        at["samples"] + BRANCH_BATCH,
        at["samples"] + 2 * BRANCH_BATCH,
    ]
    assert [row["lr"] for row in rows] == [5e-4, 5e-4]
    assert rows[0]["tokens"] == at["tokens"] + BRANCH_BATCH * LENGTH
    assert abs(rows[0]["loss"] - at["loss"]) < abs(rows[0]["loss"] - unbroken.losses()[0])


def test_weights_of_a_checkpoint_start_a_new_run(runs: Runs, unbroken: Run) -> None:
    run = runs[weights]
    assert f"takes weights of {unbroken.checkpoint}" in run.said
    (row,) = [row for row in run.curve() if "loss" in row]
    assert (row["step"], row["samples"]) == (1, 2)
    losses = unbroken.losses()
    assert abs(row["loss"] - losses[-1]) < abs(row["loss"] - losses[0])


def test_weights_and_biases_has_each_row_if_configured_and_installed(runs: Runs) -> None:
    run = runs[extension]
    lines = (run.folder / "wandb.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines]
    assert [call for call, _ in calls] == ["init", *["log"] * (len(calls) - 2), "finish"]
    given = calls[0][1]
    assert (given["project"], given["id"]) == ("tiny", run.done["identity"])
    assert given["config"]["train"]["steps"] == STEPS + 2
    logged = {row["step"]: row["loss"] for _, row in calls[1:-1] if "loss" in row}
    assert logged == {row["step"]: row["loss"] for row in run.curve() if "loss" in row}
    assert not (runs[branch].folder / "wandb.jsonl").exists(), "not configured, and still told"


def test_what_a_run_is_to_start_from_must_be_there_and_be_that_run(
    data: Data, unbroken: Run, tmp_path: Path
) -> None:
    run = Run(data, tmp_path)
    said = run.finish(settings(continue_from="nowhere/step_00000004"), code=1)
    assert "nowhere/step_00000004 is no checkpoint" in said
    other = settings(steps=STEPS + 2, continue_from=str(unbroken.checkpoint))
    said = run.finish(other | {"optimizer": {"lr": 5e-3}}, code=1)
    assert "not the same run: optimizer changed" in said
    assert not run.identities


def test_weights_of_a_hugging_face_folder_give_its_own_loss(data: Data, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 257, "n_positions": LENGTH, "n_embd": 32, "n_layer": 2, "n_head": 2}
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).eval()
    theirs.save_pretrained(tmp_path / "model")
    run = Run(data, tmp_path / "run")
    start = {"continue_from": str(tmp_path / "model"), "continue_mode": "weights"}
    run.finish(settings(steps=1, **start))
    tokens = torch.from_numpy(Samples(data.index, "train").batch(0, 2))
    with torch.no_grad():
        logits = theirs(tokens[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    assert run.losses() == pytest.approx([float(loss)], rel=1e-5)
