"""All that is taken from inside DeepSpeed 0.19.8, by names that it does not promise to keep.

tests/parallel/test_deepspeed_internals.py fails when an upgrade changes one of them. What each is
for:

- no shared-memory op: DeepSpeed would compile it at start, on machines with a compiler, for 30 to
  50 s, and a run killed meanwhile leaves a lock that all later ones wait for;
- no import of its Muon optimizer as it stands: it would set up torch.compile, for 4 to 6 s of CPU
  time a rank at each start, for an optimizer that is not used here;
- torch's linear layer back in its place, where ZeRO 3 puts its own: compiled blocks need torch's;
- the last layout forgotten, so that engines of several layouts can be built in one process;
- own bounds of the pipeline's stages: it can only divide by counts;
- a hook between the reduction of gradients and the optimizer's step, to find the norm and clip
  where DeepSpeed does it wrongly (fp32 without ZeRO counts tied and replicated tensors twice);
- bf16 gradients added to their float32 sums without a float32 copy of each;
- weights put in once the engine is built, float32 and low-precision copy, as the former would else
  be made of the latter;
- the count of micro-batches, which decides where a step ends;
- the methods that make up a step, to time them;
- optimizer state, which its public functions reach only once it is linked, and only for the first
  parameter group unless linked again.
"""

import importlib
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any
from unittest.mock import patch

import deepspeed
import torch
from deepspeed.pipe import PipelineModule
from deepspeed.runtime.bf16_optimizer import BF16_Optimizer
from deepspeed.runtime.pipe.engine import PipelineEngine
from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3
from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer
from deepspeed.utils import groups, safe_set_full_fp32_param, safe_set_local_fp32_param
from torch import Tensor

TORCH_LINEAR = torch.nn.functional.linear  # taken before any engine is built
MOMENTS = ("exp_avg", "exp_avg_sq")

ZERO_OPTIMIZERS = (DeepSpeedZeroOptimizer, DeepSpeedZeroOptimizer_Stage3, BF16_Optimizer)


def forbid_compilation() -> None:
    """Switch the shared-memory op off; to be called before the process group is made."""
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False


def import_muon_uncompiled() -> None:
    """Import the module that DeepSpeed asks whether an optimizer is Muon, without compiling it."""
    with patch("torch.compile", lambda function=None, **rest: function or (lambda inner: inner)):
        importlib.import_module("deepspeed.runtime.zero.muon.muon_optimizer")


def forget_last_layout() -> None:
    """Let another engine, of another layout, be built in this process."""
    groups.mpu = None
    restore_linear()


def restore_linear() -> None:
    """Undo what ZeRO 3 does when an engine is built: it puts its own linear layer in torch's place.

    Its own rounds otherwise, and asks each weight whether it is whole, so that no graph could serve
    all blocks.
    """
    torch.nn.functional.linear = TORCH_LINEAR


class StagedPipeline(PipelineModule):  # type: ignore[misc]  # DeepSpeed has no types
    """A pipeline whose stage k holds layers ``bounds[k]`` up to ``bounds[k + 1]``.

    ``begin`` is called before each micro-batch of training goes forward through the stage.
    """

    def __init__(
        self,
        row: Sequence[Any],
        bounds: Sequence[int],
        begin: Callable[[], None] | None,
        **rest: Any,
    ):
        self._bounds, self._begin = list(bounds), begin
        super().__init__(row, **rest)

    def _partition_layers(self, method: str = "") -> None:
        stage = self._topo.get_coord(self.global_rank).pipe
        self.parts = self._bounds
        self._set_bounds(start=self.parts[stage], stop=self.parts[stage + 1])

    def forward(self, forward_input: Any) -> Any:
        if self._begin and self.training:
            self._begin()
        return super().forward(forward_input)


def before_optimizer_step(engine: Any, hook: Callable[[], None]) -> None:
    """Have ``hook`` called when gradients are complete, just before each optimizer step."""
    original = engine._take_model_step

    def step(self: Any, *arguments: Any) -> None:
        hook()
        original(*arguments)

    engine._take_model_step = MethodType(step, engine)


def add_without_copies(optimizer: Any) -> None:
    """Have bf16 gradients added to their float32 sums in one pass each, not in two."""
    if isinstance(optimizer, BF16_Optimizer):
        optimizer._update_hp_grad = MethodType(_add_to_sum, optimizer)


@torch.no_grad()
def _add_to_sum(
    optimizer: Any, parameter: Any, group: int, index: int, clear_lp_grads: bool
) -> None:
    if parameter.grad is None:
        return
    total = optimizer.fp32_groups_gradients[group][index]
    total.add_(parameter.grad.view(total.shape))
    parameter._hp_grad = total
    optimizer.fp32_groups_has_gradients[group][index] = True


def skip_step(engine: Any, parameters: Sequence[Tensor]) -> None:
    """From that hook: have the optimizer, without ZeRO, apply nothing, and count the step."""
    for parameter in parameters:
        parameter.grad = None
    engine.skipped_steps += 1


def set_global_batch_size(engine: Any, size: int) -> None:
    """Change the number of micro-batches a step, between steps.

    DeepSpeed ends a step when its count of all micro-batches divides by their number a step, so
    that count must begin anew.
    """
    engine.set_train_batch_size(size)
    engine.micro_steps = 0


PARTS = {
    "forward": "forward",
    "backward": "backward",
    "allreduce_gradients": "reduce",
    "_take_model_step": "optimizer",
}
PIPELINE_PARTS = {
    "ForwardPass": "forward",
    "BackwardPass": "backward",
    "ReduceGrads": "reduce",
    "ReduceTiedGrads": "reduce",
    "OptimizerStep": "optimizer",
    "SendActivation": "send_receive",
    "RecvActivation": "send_receive",
    "SendGrad": "send_receive",
    "RecvGrad": "send_receive",
}


def wrap_parts(engine: Any, wrap: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
    """Have every part of a step run as ``wrap(part, method)``."""
    if isinstance(engine, PipelineEngine):
        engine._INSTRUCTION_MAP = {
            kind: wrap(PIPELINE_PARTS[kind.__name__], method)
            if kind.__name__ in PIPELINE_PARTS
            else method
            for kind, method in engine._INSTRUCTION_MAP.items()
        }
        return
    for name, part in PARTS.items():
        setattr(engine, name, wrap(part, getattr(engine, name)))


def flat_parameters(optimizer: Any) -> list[Tensor]:
    """The tensors that the client's optimizer steps: under ZeRO, this rank's flat partitions."""
    if isinstance(optimizer, BF16_Optimizer):
        return list(optimizer.fp32_groups_flat_partition)
    if isinstance(optimizer, DeepSpeedZeroOptimizer_Stage3):
        return list(optimizer.fp32_partitioned_groups_flat)
    if isinstance(optimizer, DeepSpeedZeroOptimizer):
        return list(optimizer.single_partition_of_fp32_groups)
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def client_optimizer(optimizer: Any) -> torch.optim.Optimizer:
    """The torch optimizer inside DeepSpeed's."""
    inner = optimizer.optimizer if isinstance(optimizer, ZERO_OPTIMIZERS) else optimizer
    if not isinstance(inner, torch.optim.Optimizer):
        raise TypeError(f"{type(inner).__name__} is no torch optimizer")
    return inner


def link_optimizer_state(optimizer: Any) -> None:
    """Tie every parameter to its optimizer state, in all groups."""
    if isinstance(optimizer, DeepSpeedZeroOptimizer | BF16_Optimizer):
        optimizer._hp_optimizer_states_linked = False
        optimizer._lazy_init_hp_params_optimizer_state()


def is_partitioned(parameter: Tensor) -> bool:
    """Whether ZeRO 3 holds only a part of this parameter on each data rank."""
    return hasattr(parameter, "ds_id")


def put_weight(parameter: Any, value: Tensor, data_rank: int, data: int) -> None:
    """Set a parameter's float32 weight and its low-precision copy, from the float32 ``value``."""
    if is_partitioned(parameter):
        part = partition_of(parameter, value, data_rank, data)
        parameter.ds_tensor.data.copy_(part)
        safe_set_local_fp32_param(parameter, part)
    elif hasattr(parameter, "_hp_mapping"):
        parameter.data.copy_(value)
        safe_set_full_fp32_param(parameter, value)
    else:
        raise TypeError("DeepSpeed holds no float32 weight beside this parameter")


def partition_of(parameter: Any, whole: Tensor, data_rank: int, data: int) -> Tensor:
    """This data rank's flat part of ``whole`` under ZeRO 3, padded as ZeRO pads it."""
    size = parameter.ds_tensor.numel()
    padded = whole.new_zeros(size * data)
    padded[: whole.numel()] = whole.flatten()
    return padded.narrow(0, data_rank * size, size)


def loss_scaler(optimizer: Any) -> Any:
    """The dynamic loss scaler, or None where there is none."""
    return getattr(optimizer, "loss_scaler", None)


def stay_at_smallest_scale(optimizer: Any) -> None:
    """Have a step overflow at the smallest loss scale as at any other: DeepSpeed would raise an
    error there, before it can be told what went wrong."""
    if scaler := loss_scaler(optimizer):
        scaler.raise_error_at_min_scale = False


SCALER_FIELDS = ("cur_scale", "cur_iter", "last_overflow_iter", "cur_hysteresis")
