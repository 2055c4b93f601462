"""Every setting of a run either decides its weights, and is in its identity, or does not."""

from typing import Any

import pytest

from web2gpt.checkpoint.identity import deciding, identity_of
from web2gpt.config.train_stage import TrainStage
from web2gpt.config.training import LOSS_SCALING, NOT_DECIDING, Optimizer, Schedule, Train

MANIFEST = {"identity": "i", "tokenizer": {"blake2b": "b", "vocab_size": 99}}
OTHER: dict[str, Any] = {  # another valid value, where twice as much is none
    "precision": "bf16", "device": "cpu", "recompute": "full", "kind": "wsd",
    "compile": "on", "attention": "flash",
    "skip_steps": ("3-4",), "rampup_start": 16, "processes": 1, "nodes": 1, "wandb_project": "p",
    "continue_from": "here",
    "continue_mode": "branch", "samples": 999, "tokens": 99999, "beta1": 0.5, "beta2": 0.5,
    "warmup_fraction": 0.5, "decay_fraction": 0.5,
}  # fmt: skip
START = {"continue_from", "continue_mode"}  # their contents decide, as the identity's start


def another(kind: type[Any], name: str) -> Any:
    value = getattr(kind(), name)
    if name in OTHER:
        return OTHER[name]
    if isinstance(value, bool):
        return not value
    return 16 if value is None else value * 2 + (value == 0)


def identity(section: str, base: str = "fp32", **changed: Any) -> str:
    """Of a run of precision ``base`` with some settings of a section changed."""
    values: dict[str, Any] = {"train": {"precision": base}}
    values[section] = {**values.get(section, {}), **changed}
    return identity_of(deciding(TrainStage.model_validate(values), MANIFEST, None))


@pytest.mark.parametrize("name", sorted(Train.model_fields.keys() - START))
def test_settings_of_train_decide_unless_they_are_known_not_to(name: str) -> None:
    value = another(Train, name)
    precision = "fp16" if name in LOSS_SCALING else "fp32"
    before = identity("train", precision)
    assert (identity("train", precision, **{name: value}) == before) == (name in NOT_DECIDING)


@pytest.mark.parametrize("name", sorted(LOSS_SCALING))
def test_loss_scaling_decides_under_fp16_only(name: str) -> None:
    assert identity("train", "bf16", **{name: another(Train, name)}) == identity("train", "bf16")


@pytest.mark.parametrize(
    ("section", "kind", "name"),
    [
        (section, kind, name)
        for section, kind in (("optimizer", Optimizer), ("schedule", Schedule))
        for name in kind.model_fields
    ],
)
def test_all_of_optimizer_and_schedule_decides(section: str, kind: type[Any], name: str) -> None:
    assert identity(section, **{name: another(kind, name)}) != identity(section)


def test_the_same_length_in_other_words_is_the_same_run() -> None:
    assert identity("train", steps=25) == identity("train", samples=400)
    assert identity("train", steps=25) == identity("train", tokens=400 * 128)


def test_what_it_starts_from_decides() -> None:
    stage = TrainStage()
    start = {"mode": "weights", "identity": "a", "step": 4}
    assert identity_of(deciding(stage, MANIFEST, start)) != identity("train")
