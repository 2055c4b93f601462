"""Names inside DeepSpeed that we rely on: an upgrade that changes one fails here, by name."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
from deepspeed.comm.torch import TorchBackend
from deepspeed.runtime import compiler
from deepspeed.runtime.bf16_optimizer import BF16_Optimizer
from deepspeed.runtime.engine import DeepSpeedEngine
from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler
from deepspeed.runtime.pipe.engine import PipelineEngine
from deepspeed.runtime.pipe.module import PipelineModule
from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3
from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer
from deepspeed.runtime.zero.utils import is_zero_supported_optimizer
from deepspeed.utils import groups

from web2gpt.parallel.deepspeed_internals import SCALER_FIELDS


def source(thing: Callable[..., Any]) -> str:
    return inspect.getsource(thing)


def test_it_is_the_version_that_was_read() -> None:
    assert deepspeed.__version__ == "0.19.8"


def test_the_shared_memory_op_is_built_only_if_it_counts_as_compatible() -> None:
    text = Path(inspect.getfile(TorchBackend)).read_text()
    assert "deepspeed.ops.__compatible_ops__.get(builder.NAME, False)" in text


def test_muon_is_imported_to_be_compared_with_and_compiles_itself() -> None:
    text = source(is_zero_supported_optimizer)
    assert "from deepspeed.runtime.zero.muon.muon_optimizer import" in text
    assert "torch.compile" in Path(inspect.getfile(compiler)).read_text()


def test_the_step_hook_stands_between_reduction_and_optimizer() -> None:
    for engine in (DeepSpeedEngine.step, PipelineEngine._exec_optimizer_step):
        assert "self._take_model_step(lr_kwargs)" in source(engine)
    assert "self.optimizer.step()" in source(DeepSpeedEngine._take_model_step)


def test_stage_bounds_are_set_in_one_method() -> None:
    text = source(PipelineModule._partition_layers)
    assert "self.parts" in text and "self._set_bounds(" in text
    assert list(inspect.signature(PipelineModule._partition_layers).parameters)[1] == "method"


@pytest.mark.parametrize(
    ("optimizer", "flat"),
    [
        (DeepSpeedZeroOptimizer, "single_partition_of_fp32_groups"),
        (BF16_Optimizer, "fp32_groups_flat_partition"),
        (DeepSpeedZeroOptimizer_Stage3, "fp32_partitioned_groups_flat"),
    ],
)
def test_flat_partitions_have_the_names_we_know(optimizer: type, flat: str) -> None:
    assert f"self.{flat}" in source(optimizer)


@pytest.mark.parametrize("optimizer", [DeepSpeedZeroOptimizer, BF16_Optimizer])
def test_optimizer_state_is_linked_once_and_for_all_unless_told(optimizer: Any) -> None:
    assert "_hp_optimizer_states_linked" in source(optimizer._lazy_init_hp_params_optimizer_state)
    assert callable(optimizer.update_lp_params)


def test_the_loss_scaler_keeps_its_numbers_in_plain_attributes() -> None:
    scaler = DynamicLossScaler(
        init_scale=2.0**16, scale_window=1000, min_scale=1, delayed_shift=2,
        consecutive_hysteresis=False, raise_error_at_min_scale=True, dtype=None,
    )  # fmt: skip
    assert all(isinstance(getattr(scaler, name), int | float) for name in SCALER_FIELDS)
    assert scaler.raise_error_at_min_scale is True


def test_the_last_mpu_is_a_module_global() -> None:
    assert hasattr(groups, "mpu")
