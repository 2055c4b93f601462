"""Every combination is either right (shown in tests/distributed) or refused with a way out."""

import os
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

os.environ.setdefault("DS_ACCELERATOR", "cpu")

from deepspeed.accelerator import get_accelerator

from web2gpt.config.train_stage import TrainStage
from web2gpt.config.training import Optimizer, Parallel, Train
from web2gpt.errors import ConfigError
from web2gpt.parallel.deepspeed_config import deepspeed_config
from web2gpt.parallel.legal import (
    ACCUMULATION,
    Combination,
    all_combinations,
    check_combination,
    nearest,
    refusal,
)
from web2gpt.train.job import Job
from web2gpt.train.stage import TrainFiles, train_run
from web2gpt.train.worker import run

# precision, stages of ZeRO, pipeline, offload: by hand from what was measured.
RIGHT = [
    ("fp32", (0, 1, 2, 3), False, False),
    ("fp32", (1, 2, 3), False, True),
    ("fp32", (0, 1), True, False),
    ("fp32", (1,), True, True),
    ("bf16", (1, 2, 3), False, False),
    ("bf16", (1, 2, 3), False, True),
    ("bf16", (1,), True, False),
    ("fp16", (1, 2, 3), False, False),
    ("fp16", (1, 2, 3), False, True),
    ("fp16", (1,), True, False),
]
ROWS = list(all_combinations())


def test_every_row_of_the_table() -> None:
    assert len(ROWS) == len(set(ROWS)) == 3 * 3 * 4 * 2 * 2
    expected = {
        Combination(precision, ACCUMULATION[precision], zero, pipeline, offload)  # type: ignore[arg-type, index]
        for precision, zeros, pipeline, offload in RIGHT
        for zero in zeros
    }
    assert {row for row in ROWS if refusal(row) is None} == expected


def test_what_is_refused_has_a_reason_and_a_nearest_that_is_right() -> None:
    for row in ROWS:
        found = refusal(row)
        if found is None:
            continue
        assert len(found.reason) > 20, row
        changes = nearest(row)
        mended = replace(row, **changes)  # type: ignore[arg-type]
        assert refusal(mended) is None, row
        assert (mended.precision, mended.pipeline) == (row.precision, row.pipeline), row
        before, after = asdict(row), asdict(mended)
        assert all(before[name] != after[name] for name in changes), row
        for name in changes:  # fewer would not do
            assert refusal(replace(mended, **{name: before[name]})), row  # type: ignore[arg-type]


def test_a_run_starts_only_with_a_row_that_is_right_else_is_told_one() -> None:
    walked = 0
    for row in ROWS:
        if row.accumulation != ACCUMULATION[row.precision]:
            continue  # no setting asks for it
        layout = Parallel(pipeline=1 + row.pipeline, zero=row.zero, offload=row.offload)  # type: ignore[arg-type]
        train = Train(precision=row.precision)
        assert Combination.of(train, layout) == row
        walked += 1
        if refusal(row) is None:
            check_combination(train, layout)
            continue
        with pytest.raises(ConfigError) as caught:
            check_combination(train, layout)
        advice = re.findall(r"parallel\.(\w+): (\w+)", str(caught.value).rpartition("; ")[2])
        taken = {name: orjson.loads(value) for name, value in advice}
        check_combination(train, Parallel.model_validate(layout.model_dump() | taken))
    assert walked == 3 * 4 * 2 * 2


def test_the_command_refuses_before_anything_is_started_or_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [Path(name) for name in ("out", "checkpoints", "work")]
    files = TrainFiles(Path("manifest.json"), Path("tokenizer.json"), *folders)
    refused = 0
    for row in ROWS:
        if row.accumulation != ACCUMULATION[row.precision] or refusal(row) is None:
            continue
        layout = {"pipeline": 1 + row.pipeline, "zero": row.zero, "offload": row.offload}
        train = {"precision": row.precision, "device": "cpu"}
        with pytest.raises(ConfigError, match=r"works$"):
            train_run(files, TrainStage.model_validate({"parallel": layout, "train": train}))
        refused += 1
    assert refused == 3 * 4 * 2 * 2 - sum(len(zeros) for _, zeros, _, _ in RIGHT)
    assert [path.name for path in tmp_path.iterdir()] == ["work_error.json"], "what it said"


def test_a_precision_that_the_device_lacks_is_refused_before_ranks_meet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(type(get_accelerator()), "is_fp16_supported", lambda self: False)
    monkeypatch.setattr("web2gpt.parallel.processes.join", lambda *_, **__: pytest.fail("joined"))
    stage = TrainStage(train=Train(precision="fp16"))
    job = Job(stage, tmp_path, 257, "identity", tmp_path, tmp_path, "cpu")
    with pytest.raises(ConfigError, match="fp16 is not supported by this cpu; bf16 is"):
        run(job, 0, None)  # type: ignore[arg-type]  # it does not come to that


def advice(stage: dict[str, dict[str, Any]]) -> str:
    with pytest.raises(ValidationError) as caught:
        TrainStage.model_validate(stage)
    return str(caught.value.errors()[0]["msg"])


@pytest.mark.parametrize(("tensor", "works"), [(5, 4), (7, 6), (24, 12)])
def test_heads_that_do_not_divide_are_told_the_nearest_that_do(tensor: int, works: int) -> None:
    model = {"n_head": 12, "n_embd": 48}
    said = advice({"model": model, "parallel": {"tensor": tensor}})
    assert said.endswith(f"take a divisor of 12, such as {works}")
    TrainStage.model_validate({"model": model, "parallel": {"tensor": works}})


def test_stages_without_a_layer_are_told_how_many_there_may_be() -> None:
    said = advice({"model": {"n_layer": 3}, "parallel": {"pipeline": 4}})
    assert said.endswith("take 3 or fewer")


@pytest.mark.parametrize(
    ("micro", "data", "size", "ways"),
    [
        (8, 1, 12, "8 or 16 works, or micro_batch_size 6"),
        (8, 1, 4, "8 works, or micro_batch_size 4"),
        (2, 3, 8, "6 or 12 works"),
        (4, 2, 12, "8 or 16 works, or micro_batch_size 3"),
    ],
)
def test_a_batch_that_does_not_divide_is_told_what_does(
    micro: int, data: int, size: int, ways: str
) -> None:
    layout, batch = {"data": data}, {"micro_batch_size": micro, "global_batch_size": size}
    assert advice({"parallel": layout, "train": batch}).endswith(f"= {micro * data}; {ways}")
    sizes, _, smaller = ways.partition(", or micro_batch_size ")
    for text in sizes.removesuffix(" works").split(" or "):
        changed = batch | {"global_batch_size": int(text)}
        TrainStage.model_validate({"parallel": layout, "train": changed})
    if smaller:
        changed = batch | {"micro_batch_size": int(smaller)}
        TrainStage.model_validate({"parallel": layout, "train": changed})


def test_the_message_says_what_why_and_what_works() -> None:
    with pytest.raises(ConfigError) as caught:
        check_combination(Train(precision="bf16"), Parallel(pipeline=2, zero=2))
    assert "parallel.zero 2, parallel.pipeline above 1" in str(caught.value)
    assert str(caught.value).endswith("parallel.zero: 1 works")


def test_deepspeed_is_told_the_accumulation_of_the_table() -> None:
    told = {
        precision: deepspeed_config(Train(precision=precision), Parallel(), Optimizer())  # type: ignore[arg-type]
        .get("data_types", {})
        .get("grad_accum_dtype")
        for precision in ACCUMULATION
    }
    # Left unset it is the type of the computation.
    assert {precision: kind or precision for precision, kind in told.items()} == ACCUMULATION


def test_fp16_has_a_loss_scale_that_follows_overflows() -> None:
    fp16 = deepspeed_config(Train(precision="fp16"), Parallel(), Optimizer())["fp16"]
    assert fp16["enabled"] and fp16["loss_scale"] == 0, "0: dynamic"
    assert fp16["initial_scale_power"] == 16 and fp16["min_loss_scale"] == 1
