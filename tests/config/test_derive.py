"""Numbers that follow from the configuration, compared with their formulas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from web2gpt.config.derive import (
    BatchPlan,
    padded_vocab_size,
    shard_names,
    world_equation,
    world_size,
)
from web2gpt.config.training import Model, Parallel, Train

few = st.integers(1, 8)


@given(few, few, few)
def test_a_global_batch_is_made_of_whole_micro_batches(micro: int, data: int, steps: int) -> None:
    train = Train(micro_batch_size=micro, global_batch_size=micro * data * steps)
    plan = BatchPlan.of(train, Parallel(data=data))
    assert plan.accumulation == steps
    assert plan.global_batch_size == train.global_batch_size


def test_the_equations_hold_as_written() -> None:
    plan = BatchPlan.of(Train(micro_batch_size=4, global_batch_size=48), Parallel(data=2))
    assert plan.equation() == "global batch 48 = micro-batch 4 x data 2 x accumulation 6"
    layout = Parallel(tensor=2, pipeline=3, data=4)
    assert world_size(layout) == 24
    assert world_equation(layout) == "processes 24 = tensor 2 x pipeline 3 x data 4"


@given(st.integers(1, 300_000), st.sampled_from([1, 64, 128]), few)
def test_the_padded_vocabulary_is_the_least_that_divides(
    vocab: int, multiple: int, tensor: int
) -> None:
    unit = multiple * tensor
    padded = padded_vocab_size(vocab, Model(vocab_multiple=multiple), Parallel(tensor=tensor))
    assert padded % unit == 0
    assert vocab <= padded < vocab + unit


@pytest.mark.parametrize(("tensor", "padded"), [(1, 50304), (2, 50432), (4, 50688), (8, 51200)])
def test_gpt2s_vocabulary_is_padded_as_megatron_does(tensor: int, padded: int) -> None:
    assert padded_vocab_size(50257, Model(vocab_multiple=128), Parallel(tensor=tensor)) == padded


def test_shard_names_sort_as_they_count() -> None:
    names = shard_names("web", 12)
    assert names == sorted(names)
    assert names[:2] == ["web-0000", "web-0001"]
    assert len(set(names)) == 12
