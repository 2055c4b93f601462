"""Every combination is either right (shown in tests/distributed) or refused with a way out."""

import re
from dataclasses import asdict, replace

import orjson
import pytest

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
