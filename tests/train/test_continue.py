"""What a run may start from, by real runs: another's checkpoint, its weights, Hugging Face's."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import Run
from tiny import BATCH, LENGTH, STEPS, Data, settings
from transformers import GPT2Config, GPT2LMHeadModel

from web2gpt.tokens.samples import Samples

SINGLE = {"parallel": {"tensor": 1}}
BRANCHED_AT, BRANCH_BATCH = 12, 8

Runs = dict[str, Run]


def extension(origin: Run) -> dict[str, Any]:
    start = {"continue_from": str(origin.checkpoint), "wandb_project": "tiny"}
    return settings(steps=STEPS + 2, checkpoint_interval=100, **start) | SINGLE


def branch(origin: Run) -> dict[str, Any]:
    start = str(origin.checkpoint.with_name(f"step_{BRANCHED_AT:08d}"))
    sizes = {"rampup_start": None, "skip_steps": [], "global_batch_size": BRANCH_BATCH}
    chosen = settings(steps=14, continue_from=start, continue_mode="branch", **sizes) | SINGLE
    return chosen | {"optimizer": {"lr": 5e-4}, "schedule": {"kind": "constant"}}


def weights(folder: Path) -> dict[str, Any]:
    start = {"continue_from": str(folder), "continue_mode": "weights"}
    return settings(steps=1, **start) | SINGLE | {"run": {"seed": 5}}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that transformers has saved."""
    sizes = {"vocab_size": 257, "n_positions": LENGTH, "n_embd": 32, "n_layer": 2, "n_head": 2}
    folder = tmp_path_factory.mktemp("theirs")
    GPT2LMHeadModel(GPT2Config(**sizes)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def runs(data: Data, unbroken: Run, theirs: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Runs that start from another, beside each other."""
    chosen = {
        "extension": extension(unbroken),
        "branch": branch(unbroken),
        "weights": weights(unbroken.checkpoint),
        "theirs": weights(theirs),
    }
    made = {name: Run(data, tmp_path_factory.mktemp(name), stand_ins=True) for name in chosen}
    processes = {name: run.start(chosen[name]) for name, run in made.items()}
    for name, run in made.items():
        assert run.end(processes[name]) == 0, run.said
    return made


def test_an_extension_is_the_same_run_longer(runs: Runs, unbroken: Run) -> None:
    run = runs["extension"]
    assert f"carries on from {unbroken.checkpoint}" in run.said
    rows = [row for row in run.curve() if "loss" in row]
    assert [row["step"] for row in rows] == [STEPS + 1, STEPS + 2]
    assert run.done["tokens"] == unbroken.done["tokens"] + 2 * BATCH * LENGTH
    assert run.done["skipped_steps"] == 1


def test_a_branch_goes_on_with_the_data_under_other_settings(runs: Runs, unbroken: Run) -> None:
    run = runs["branch"]
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


def test_a_branch_without_a_step_of_its_own_has_a_checkpoint_of_its_own(
    data: Data, unbroken: Run, tmp_path: Path
) -> None:
    run, chosen = Run(data, tmp_path), branch(unbroken)
    chosen["train"]["steps"] = BRANCHED_AT
    run.finish(chosen)
    assert Path(run.done["checkpoint"]).name == f"step_{BRANCHED_AT:08d}"
    assert run.has(f"step_{BRANCHED_AT:08d}/index.json")


def test_weights_of_a_checkpoint_start_a_new_run(runs: Runs, unbroken: Run) -> None:
    run = runs["weights"]
    assert f"takes weights of {unbroken.checkpoint}" in run.said
    (row,) = [row for row in run.curve() if "loss" in row]
    assert (row["step"], row["samples"]) == (1, 2)
    losses = unbroken.losses()
    assert abs(row["loss"] - losses[-1]) < abs(row["loss"] - losses[0])


def test_weights_and_biases_has_each_row_if_configured_and_installed(runs: Runs) -> None:
    run = runs["extension"]
    lines = (run.folder / "wandb.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines]
    assert [call for call, _ in calls] == ["init", *["log"] * (len(calls) - 2), "finish"]
    given = calls[0][1]
    assert (given["project"], given["id"]) == ("tiny", run.done["identity"])
    assert given["config"]["train"]["steps"] == STEPS + 2
    logged = {row["step"]: row["loss"] for _, row in calls[1:-1] if "loss" in row}
    assert logged == {row["step"]: row["loss"] for row in run.curve() if "loss" in row}
    assert not (runs["branch"].folder / "wandb.jsonl").exists(), "not configured, and still told"


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


def test_weights_of_a_hugging_face_folder_give_its_own_loss(
    runs: Runs, theirs: Path, data: Data
) -> None:
    tokens = torch.from_numpy(Samples(data.index, "train").batch(0, 2))
    with torch.no_grad():
        logits = GPT2LMHeadModel.from_pretrained(theirs).eval()(tokens[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    assert runs["theirs"].losses() == pytest.approx([float(loss)], rel=1e-5)
