"""Names inside DeepSpeed that we rely on: an upgrade that changes one fails here, by name."""

import ast
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
from deepspeed.comm.torch import TorchBackend
from deepspeed.runtime import compiler
from deepspeed.runtime.bf16_optimizer import BF16_Optimizer
from deepspeed.runtime.engine import DeepSpeedEngine
from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler
from deepspeed.runtime.pipe.engine import PipelineEngine
from deepspeed.runtime.pipe.module import PipelineModule
from deepspeed.runtime.utils import is_model_parallel_parameter
from deepspeed.runtime.zero import partition_parameters
from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3
from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer
from deepspeed.runtime.zero.utils import is_zero_supported_optimizer
from deepspeed.utils import groups

from web2gpt.parallel.deepspeed_internals import (
    PARTS,
    PIPELINE_PARTS,
    SCALER_FIELDS,
    put_weight,
)

PACKAGE = Path(__file__).parents[2] / "src" / "web2gpt"
OWNER = "deepspeed_internals.py"
PROMISED = {
    "deepspeed",
    "deepspeed.accelerator",
    "deepspeed.pipe",
    "deepspeed.runtime.pipe.topology",  # its tutorials take the topology from there
    "deepspeed.utils",
}
OTHERS = ("torch.ops.", "os._exit")  # private names that are not DeepSpeed's


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


def test_a_parameter_without_a_float32_weight_beside_it_is_refused() -> None:
    with pytest.raises(TypeError, match="no float32 weight"):
        put_weight(torch.nn.Parameter(torch.zeros(2)), torch.ones(2), 0, 1)


@pytest.mark.parametrize("optimizer", [DeepSpeedZeroOptimizer, BF16_Optimizer])
def test_optimizer_state_is_linked_once_and_for_all_unless_told(optimizer: Any) -> None:
    assert "_hp_optimizer_states_linked" in source(optimizer._lazy_init_hp_params_optimizer_state)


def test_the_loss_scaler_keeps_its_numbers_in_plain_attributes() -> None:
    scaler = DynamicLossScaler(
        init_scale=2.0**16, scale_window=1000, min_scale=1, delayed_shift=2,
        consecutive_hysteresis=False, raise_error_at_min_scale=True, dtype=None,
    )  # fmt: skip
    assert all(isinstance(getattr(scaler, name), int | float) for name in SCALER_FIELDS)
    assert scaler.raise_error_at_min_scale is True


def test_the_last_mpu_is_a_module_global() -> None:
    assert hasattr(groups, "mpu")


def private_names(path: Path) -> Iterator[str]:
    """What a file takes from inside of DeepSpeed, or from inside of any object but its own."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (a.name for a in names if a.name.startswith("deepspeed")
                            and a.name not in PROMISED)  # fmt: skip
            case ast.ImportFrom(module=str(module)) if module.startswith("deepspeed"):
                if module not in PROMISED:
                    yield module
            case ast.Attribute(attr=name) if name.startswith("_") and not name.startswith("__"):
                text = ast.unparse(node)
                if not text.startswith(("self.", "cls.", *OTHERS)):
                    yield text


def test_private_names_stand_in_one_file() -> None:
    found = {
        path.name: names
        for folder in ("parallel", "checkpoint", "train", "sample", "evaluate")
        for path in sorted((PACKAGE / folder).glob("*.py"))
        if (names := list(private_names(path)))
    }
    assert list(found) == [OWNER], found


def test_bf16_sums_are_where_they_are_added_to() -> None:
    text = source(BF16_Optimizer)
    assert list(inspect.signature(BF16_Optimizer._update_hp_grad).parameters)[1:] == [
        "lp", "group_idx", "param_idx", "clear_lp_grads",
    ]  # fmt: skip
    for name in ("fp32_groups_gradients", "fp32_groups_has_gradients", "._hp_grad"):
        assert name in text


def test_a_step_ends_where_the_count_of_micro_batches_says() -> None:
    text = source(DeepSpeedEngine.is_gradient_accumulation_boundary)
    assert "(self.micro_steps + 1)" in text and "self.gradient_accumulation_steps() == 0" in text
    assert "self.micro_batches =" in source(PipelineEngine.set_train_batch_size)
    assert "self.skipped_steps" in source(DeepSpeedEngine._take_model_step)


def test_the_parts_of_a_step_have_the_names_that_are_timed() -> None:
    assert all(callable(getattr(DeepSpeedEngine, name)) for name in PARTS)
    known = {kind.__name__ for kind in PipelineEngine._INSTRUCTION_MAP}
    assert set(PIPELINE_PARTS) <= known


def test_tied_copies_and_partitioned_parameters_carry_the_marks_we_know() -> None:
    assert ".ds_pipe_replicated" in Path(inspect.getfile(PipelineModule)).read_text()
    text = Path(inspect.getfile(partition_parameters)).read_text()
    assert ".ds_id" in text and ".ds_tensor" in text
    assert "p.tensor_model_parallel" in source(is_model_parallel_parameter)
