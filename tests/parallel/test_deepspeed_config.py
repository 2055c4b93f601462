"""What DeepSpeed is told, and what the device is asked, follow from the precision."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("DS_ACCELERATOR", "cpu")

from deepspeed.accelerator import get_accelerator

from web2gpt.config.combinations import ACCUMULATION
from web2gpt.config.train_stage import TrainStage
from web2gpt.config.training import Optimizer, Parallel, Train
from web2gpt.errors import ConfigError
from web2gpt.parallel.deepspeed_config import deepspeed_config
from web2gpt.train.job import Job
from web2gpt.train.worker import run


def test_a_precision_that_the_device_lacks_is_refused_before_ranks_meet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(type(get_accelerator()), "is_fp16_supported", lambda self: False)
    monkeypatch.setattr("web2gpt.parallel.processes.join", lambda *_, **__: pytest.fail("joined"))
    stage = TrainStage(train=Train(precision="fp16"))
    job = Job(stage, tmp_path, 257, "identity", tmp_path, tmp_path, "cpu")
    with pytest.raises(ConfigError, match="fp16 is not supported by this cpu; bf16 is"):
        run(job, 0, None)


def test_deepspeed_is_told_the_accumulation_of_the_table() -> None:
    told = {
        precision: deepspeed_config(Train(precision=precision), Parallel(), Optimizer())
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
