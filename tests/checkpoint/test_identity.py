"""What makes another run, and what does not."""

from pathlib import Path
from typing import Any

import pytest

from web2gpt.checkpoint.identity import deciding, identity_of, record_identity
from web2gpt.config.train_stage import TrainStage

MANIFEST = {"identity": "tokens", "tokenizer": {"blake2b": "words", "vocab_size": 300}}


def identity(stage: dict[str, Any], manifest: dict[str, Any] = MANIFEST) -> str:
    return identity_of(deciding(TrainStage.model_validate(stage), manifest, None))


@pytest.mark.parametrize(
    "stage",
    [
        {"parallel": {"tensor": 2, "pipeline": 2, "zero": 0}},
        {"train": {"micro_batch_size": 2, "eval_interval": 7, "log_interval": 3, "threads": 2}},
        {"train": {"checkpoint_interval": 9, "keep_last": 5, "recompute": "full"}},
        {"train": {"device": "cpu"}},
        {"model": {"vocab_multiple": 16}},
        {"run": {"name": "other"}},
    ],
)
def test_layout_and_reporting_are_no_part_of_it(stage: dict[str, Any]) -> None:
    assert identity(stage) == identity({})


@pytest.mark.parametrize(
    "stage",
    [
        {"run": {"seed": 5}},
        {"model": {"n_layer": 3}},
        {"model": {"resid_pdrop": 0.1}},
        {"optimizer": {"lr": 1e-3}},
        {"schedule": {"kind": "linear"}},
        {"train": {"steps": 301}},
        {"train": {"global_batch_size": 32}},
        {"train": {"precision": "bf16"}},
    ],
)
def test_whatever_decides_the_weights_is(stage: dict[str, Any]) -> None:
    assert identity(stage) != identity({})


def test_tokens_and_tokenizer_are_too() -> None:
    assert identity({}, MANIFEST | {"identity": "others"}) != identity({})
    assert identity({}, MANIFEST | {"tokenizer": {"blake2b": "x", "vocab_size": 300}}) != identity(
        {}
    )


def test_a_new_run_is_told_what_changed_an_old_one_nothing(tmp_path: Path) -> None:
    old = deciding(TrainStage(), MANIFEST, None)
    new = deciding(TrainStage.model_validate({"optimizer": {"lr": 1e-3}}), MANIFEST, None)
    assert record_identity(tmp_path, old) is None
    said = record_identity(tmp_path, new)
    assert said and identity_of(old) in said and "changed: optimizer.lr 0.00015 -> 0.001" in said
    assert record_identity(tmp_path, old) is None
