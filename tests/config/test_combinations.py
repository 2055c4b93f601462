"""Every combination is either right (shown in tests/distributed) or refused with a way out."""

import re
from dataclasses import asdict, replace
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from web2gpt.config.combinations import (
    ACCUMULATION,
    Combination,
    all_combinations,
    check_combination,
    nearest,
    refusal,
)
from web2gpt.config.load import load_config
from web2gpt.config.train_stage import TrainStage
from web2gpt.config.training import Parallel, Train
from web2gpt.errors import ConfigError

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
        Combination(precision, ACCUMULATION[precision], zero, pipeline, offload)
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
        mended = replace(row, **changes)
        assert refusal(mended) is None, row
        assert (mended.precision, mended.pipeline) == (row.precision, row.pipeline), row
        before, after = asdict(row), asdict(mended)
        assert all(before[name] != after[name] for name in changes), row
        for name in changes:  # fewer would not do
            assert refusal(replace(mended, **{name: before[name]})), row


def test_a_run_starts_only_with_a_row_that_is_right_else_is_told_one() -> None:
    walked = 0
    for row in ROWS:
        if row.accumulation != ACCUMULATION[row.precision]:
            continue  # no setting asks for it
        layout = Parallel(pipeline=1 + row.pipeline, zero=row.zero, offload=row.offload)
        train = Train(precision=row.precision)
        assert Combination.of(train, layout) == row
        walked += 1
        if refusal(row) is None:
            check_combination(train, layout)
            continue
        with pytest.raises(ValueError) as caught:
            check_combination(train, layout)
        advice = re.findall(r"parallel\.(\w+): (\w+)", str(caught.value).rpartition("; ")[2])
        taken = {name: orjson.loads(value) for name, value in advice}
        check_combination(train, Parallel.model_validate(layout.model_dump() | taken))
    assert walked == 3 * 4 * 2 * 2


def test_a_configuration_with_a_row_that_is_refused_is_no_configuration() -> None:
    """The whole one, which Snakemake reads before it plans a job, and a training run's."""
    refused = 0
    for row in ROWS:
        if row.accumulation != ACCUMULATION[row.precision] or refusal(row) is None:
            continue
        layout = {"pipeline": 1 + row.pipeline, "zero": row.zero, "offload": row.offload}
        sections = {"parallel": layout, "train": {"precision": row.precision}}
        assert advice(sections).endswith(" works")
        with pytest.raises(ConfigError, match=r"parallel\.\w+: \w+ works$"):
            load_config(
                {"input": [{"name": "web", "kind": "warc", "paths": ["x.warc"]}], **sections}
            )
        refused += 1
    assert refused == 3 * 4 * 2 * 2 - sum(len(zeros) for _, zeros, _, _ in RIGHT)


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
    with pytest.raises(ValueError) as caught:
        check_combination(Train(precision="bf16"), Parallel(pipeline=2, zero=2))
    assert "parallel.zero 2, parallel.pipeline above 1" in str(caught.value)
    assert str(caught.value).endswith("parallel.zero: 1 works")


def test_a_ramp_up_of_more_sizes_than_can_be_meant_is_refused_at_once() -> None:
    batch = {"rampup_start": 2, "rampup_increment": 2, "micro_batch_size": 2}
    said = advice({"train": batch | {"global_batch_size": 100_000_000}})
    assert said.endswith("makes more than 10,000 sizes of batch; grow by more")
    TrainStage.model_validate({"train": batch | {"global_batch_size": 2_000}})
