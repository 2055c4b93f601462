"""DeepSpeed's configuration, worked out from ours. Nothing else of it is used."""

from typing import Any

from web2gpt.config.combinations import ACCUMULATION
from web2gpt.config.derive import BatchPlan
from web2gpt.config.training import Optimizer, Parallel, Train

BUCKET = 20_000_000  # elements; DeepSpeed's default of 5e8 is allocated whole at each step
# Parameters: ZeRO 3 keeps a gathered one whole if it is used again before as many others have been.
# DeepSpeed's default; so the last half billion stay whole from the forward to the backward pass.
REUSE = 1_000_000_000
NEVER = 1 << 60


def deepspeed_config(train: Train, layout: Parallel, optimizer: Optimizer) -> dict[str, Any]:
    """The configuration for a combination that ``config.combinations`` allows."""
    plan = BatchPlan.of(train, layout)
    config: dict[str, Any] = {
        "train_batch_size": plan.global_batch_size,
        "train_micro_batch_size_per_gpu": plan.micro_batch_size,
        "gradient_accumulation_steps": plan.accumulation,
        "steps_per_print": NEVER,
        "timers": {"throughput": {"enabled": False}},  # waits for the GPU twice a micro-batch
        # Without ZeRO, DeepSpeed's norm counts some tensors twice: parallel.norm clips instead.
        "gradient_clipping": optimizer.grad_clip if layout.zero else 0.0,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,  # its own optimizer would have to be compiled
        "zero_optimization": _zero(layout),
        # Boundary activations are sent whole; splitting them saves time between nodes only.
        "pipeline": {"pipe_partitioned": False, "grad_partitioned": False, "use_reentrant": False},
    }
    if train.precision == "bf16":
        # Each gradient goes to its float32 sum as soon as it is there, and is freed.
        config["bf16"] = {"enabled": True, "immediate_grad_update": True}
        if layout.zero == 1:
            # Else the finished sums would be rounded to bf16 on their way between data ranks, and
            # with one data rank too.
            config["communication_data_type"] = "fp32"
    if train.precision == "fp16":
        config["fp16"] = _fp16(train)
    # DeepSpeed takes another optimizer, a wrong one under fp16, where this is set without need.
    if ACCUMULATION[train.precision] != train.precision:
        config["data_types"] = {"grad_accum_dtype": ACCUMULATION[train.precision]}
    return config


def _fp16(train: Train) -> dict[str, Any]:
    return {
        "enabled": True,
        "loss_scale": train.loss_scale,
        "initial_scale_power": train.loss_scale_power,
        "loss_scale_window": train.loss_scale_window,
        "hysteresis": train.loss_scale_hysteresis,
        "min_loss_scale": train.min_loss_scale,
    }


def _zero(layout: Parallel) -> dict[str, Any]:
    zero: dict[str, Any] = {
        "stage": layout.zero,
        "reduce_bucket_size": BUCKET,
        "allgather_bucket_size": BUCKET,
        # Parameters are gathered, and gradients summed, beside the computation. Under ZeRO 2 that
        # takes more from the matrix products than it hides (measured on two GPUs).
        "overlap_comm": layout.zero == 3,
    }
    if layout.zero == 3:
        zero["stage3_param_persistence_threshold"] = 0
        zero["stage3_prefetch_bucket_size"] = BUCKET
        zero["stage3_max_reuse_distance"] = REUSE
    if layout.offload:
        zero["offload_optimizer"] = {"device": "cpu"}
    return zero
