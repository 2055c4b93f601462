"""Planted faults: each makes a comparison fail, or is found by the trainer's own checks."""

import math
from pathlib import Path
from typing import Any

import pytest
import rank_tasks
from cells import BOUNDS, RELATIVE, WEIGHTS, Cell
from plain_loop import train_plainly
from pool import Worlds

from web2gpt.checkpoint.joined import JoinedCheckpoint
from web2gpt.checkpoint.load import newest_checkpoint

STEPS = 3


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        (Cell(tensor=2), "summed bias"),
        (Cell(pipeline=2), "untied copy"),
        (Cell(tensor=2), "padded row in the softmax"),
        (Cell(tensor=2, sequence=True), "partial gradients of layer norms"),
        (Cell(tensor=2, sequence=True), "wrong positions"),
    ],
    ids=str,
)
def test_a_planted_fault_shows_in_losses_or_norms(worlds: Worlds, cell: Cell, fault: str) -> None:
    truth = train_plainly()
    found = worlds[cell.size].run(rank_tasks.train, cell, fault, STEPS)[0]
    assert any(
        found[key] != pytest.approx(truth[key][:STEPS], rel=10 * RELATIVE)
        for key in ("losses", "norms")
    )
    if fault == "untied copy":
        assert (
            "weight of wte.weight is not the same on the first and the last stage"
            in found["faults"]
        )
    if fault == "partial gradients of layer norms":
        assert "weight of h.0.ln_1.bias is not the same on tensor ranks" in found["faults"]


@pytest.mark.long
def test_a_clipping_that_counts_tied_tensors_twice_would_show(worlds: Worlds) -> None:
    cell = Cell(pipeline=2, zero=0)
    found = worlds[2].run(rank_tasks.train, cell, "DeepSpeed's own clipping", STEPS)[0]
    assert found["losses"] != pytest.approx(train_plainly()["losses"][:STEPS], rel=RELATIVE)


@pytest.mark.parametrize("precision", [pytest.param("bf16", marks=pytest.mark.long), "fp16"])
def test_a_padded_row_in_the_softmax_shows_in_low_precision_too(
    worlds: Worlds, precision: str
) -> None:
    cell = Cell(precision=precision)
    found = worlds[1].run(rank_tasks.train, cell, "padded row in the softmax")[0]
    assert found["losses"] != pytest.approx(train_plainly()["losses"], rel=BOUNDS[precision][0])


def test_sums_in_16_bits_would_show(worlds: Worlds) -> None:
    cell = Cell(precision="bf16", micro=1)
    assert max(worlds[1].run(rank_tasks.accumulate, cell, "sums in 16 bits")) > 100 * RELATIVE


@pytest.mark.long
def test_a_summed_bias_shows_in_merged_weights(worlds: Worlds, tmp_path: Path) -> None:
    worlds[2].run(rank_tasks.train_by_sgd, Cell(tensor=2), tmp_path, "summed bias")
    path, _ = newest_checkpoint(tmp_path)
    assert path is not None
    with JoinedCheckpoint(path) as checkpoint:
        for name, wanted in train_plainly(sgd=True)["weights"].items():
            if (checkpoint.weight(name) - wanted).abs().max() > WEIGHTS:
                return
    raise AssertionError("all weights are within the bound")


TIED = "wte.weight is not the same on the first and the last stage"
SHARED = "is not the same on tensor ranks"
COPY = "the forward pass reads another ln_f.weight than the optimizer holds on rank 1"


@pytest.mark.parametrize(
    ("cell", "kind", "name", "said"),
    [
        (Cell(tensor=2), "weight", "h.2.ln_1.bias", f"weight of h.2.ln_1.bias {SHARED}"),
        (Cell(tensor=2, zero=3), "exp_avg", "wpe.weight", f"exp_avg of wpe.weight {SHARED}"),
        (Cell(data=2), "copy", "ln_f.bias", "ln_f.bias is not the same on data ranks"),
        (Cell(data=2), "copy", "ln_f.weight", COPY),
        (Cell(pipeline=2), "exp_avg_sq", "wte.weight", f"exp_avg_sq of {TIED}"),
        (Cell(pipeline=2, zero=0), "weight", "wte.weight", f"weight of {TIED}"),
    ],
    ids=str,
)
def test_one_bit_apart_is_found_and_named(
    worlds: Worlds, cell: Cell, kind: str, name: str, said: str
) -> None:
    answers = worlds[cell.size].run(rank_tasks.find_drift, cell, kind, name)
    assert len(set(answers)) == 1, "all ranks stop together"
    assert said in answers[0]
    assert "train: after step 1: " in answers[0]


@pytest.mark.parametrize(
    "cell", [Cell(zero=3), pytest.param(Cell(pipeline=2), marks=pytest.mark.long)], ids=str
)
def test_a_parameter_without_a_gradient_is_found_and_named(worlds: Worlds, cell: Cell) -> None:
    name = "h.3.mlp.c_proj.bias"
    for found in worlds[cell.size].run(rank_tasks.lose_gradient, cell, name):
        assert found == [f"{name} has had no gradient on rank {cell.size - 1}"]


@pytest.mark.parametrize(
    "cell",
    [
        Cell(zero=0),
        Cell(zero=3),
        Cell(tensor=2),
        Cell(pipeline=2, precision="bf16"),
        pytest.param(Cell(pipeline=2), marks=pytest.mark.long),
        pytest.param(Cell(data=2, zero=3), marks=pytest.mark.long),
        pytest.param(Cell(tensor=2, pipeline=2, data=2, sequence=True), marks=pytest.mark.long),
        pytest.param(Cell(precision="bf16", zero=2), marks=pytest.mark.long),
        pytest.param(Cell(tensor=2, pipeline=2, zero=0), marks=pytest.mark.long),
        pytest.param(Cell(offload=True), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_nan_in_a_gradient_is_not_applied_and_every_rank_knows(worlds: Worlds, cell: Cell) -> None:
    for result in worlds[cell.size].run(rank_tasks.meet_bad_gradient, cell, math.nan):
        assert result["skipped"] == result["bad"] == [False, False, True, False, False]
        require_recovery(result)


@pytest.mark.parametrize(
    "cell",
    [
        Cell(precision="fp16"),
        Cell(precision="fp16", pipeline=2),
        pytest.param(Cell(precision="fp16", data=2, zero=2), marks=pytest.mark.long),
        pytest.param(Cell(precision="fp16", data=2, zero=3), marks=pytest.mark.long),
        pytest.param(Cell(precision="fp16", tensor=2, offload=True), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_fp16_skips_an_overflow_says_so_and_recovers(worlds: Worlds, cell: Cell) -> None:
    for result in worlds[cell.size].run(rank_tasks.meet_bad_gradient, cell, math.inf):
        assert result["skipped"] == [False, False, True, False, False]
        assert not any(result["bad"]), "a lower loss scale mends it"
        assert result["scaler"]["cur_hysteresis"] == 1, "the next overflow halves the scale"
        require_recovery(result)


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_fp16_overflows_at_the_smallest_scale_are_counted_and_no_error(
    worlds: Worlds, zero: int
) -> None:
    """Not DeepSpeed but who counts bad steps in a row ends the run, and says what is wrong."""
    cell = Cell(precision="fp16", zero=zero)
    (result,) = worlds[1].run(rank_tasks.overflow_at_the_smallest_scale, cell, 4)
    assert result["skipped"] == result["bad"] == [True] * 4


def require_recovery(result: dict[str, Any]) -> None:
    assert result["same"], "the bad gradient was applied"
    assert result["optimizer_steps"] == 4 and result["faults"] == []
    assert all(map(math.isfinite, result["losses"]))
    assert result["losses"][4] < result["losses"][0]


def test_nothing_is_found_where_nothing_is_wrong(worlds: Worlds) -> None:
    for result in worlds[2].run(rank_tasks.train, Cell(data=2), "", STEPS):
        assert result["faults"] == [] and result["skipped"] == [False] * STEPS
