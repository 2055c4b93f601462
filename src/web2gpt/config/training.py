"""Settings of the model and its training."""

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from web2gpt.config.base import Real, Settings


class Model(Settings):
    """GPT-2's sizes, under Hugging Face's names."""

    n_layer: int = Field(4, ge=1, le=10_000, description="blocks")
    n_embd: int = Field(128, ge=1, le=1_000_000, description="hidden size")
    n_head: int = Field(4, ge=1, le=10_000, description="attention heads")
    n_positions: int = Field(128, ge=1, le=10_000_000, description="sequence length, in tokens")
    activation_function: Literal["gelu_new", "gelu"] = Field("gelu_new", description="of the MLP")
    embd_pdrop: Real = Field(0.0, ge=0, lt=1, description="dropout after the embeddings")
    attn_pdrop: Real = Field(0.0, ge=0, lt=1, description="dropout of attention weights")
    resid_pdrop: Real = Field(0.0, ge=0, lt=1, description="dropout before each residual sum")
    layer_norm_epsilon: Real = Field(1e-5, gt=0, description="of all layer norms")
    initializer_range: Real = Field(0.02, gt=0, description="standard deviation of initial weights")
    vocab_multiple: int = Field(
        128,
        ge=1,
        le=1_000_000,
        description="the vocabulary is padded to a multiple of this times tensor",
    )

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "Model":
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd = {self.n_embd} is not a multiple of n_head = {self.n_head}")
        return self


class Parallel(Settings):
    """The layout: processes = tensor x pipeline x data."""

    tensor: int = Field(1, ge=1, le=10_000, description="ranks that share each layer")
    pipeline: int = Field(1, ge=1, le=10_000, description="stages that the layers are split into")
    data: int = Field(1, ge=1, le=100_000, description="replicas that share the global batch")
    zero: Literal[0, 1, 2, 3] = Field(
        1, description="what data ranks share: 1 optimizer, 2 and gradients, 3 and parameters"
    )
    offload: bool = Field(False, description="keep the optimizer's state in the CPU's memory")
    sequence: bool = Field(
        False, description="tensor ranks share positions too where layers are not split"
    )


class Optimizer(Settings):
    """AdamW."""

    lr: Real = Field(1.5e-4, gt=0, description="peak learning rate")
    beta1: Real = Field(0.9, ge=0, lt=1, description="decay of the first moment")
    beta2: Real = Field(0.95, ge=0, lt=1, description="decay of the second moment")
    eps: Real = Field(1e-8, gt=0, description="added to the denominator")
    weight_decay: Real = Field(0.1, ge=0, description="on matrices and embeddings only")
    grad_clip: Real = Field(1.0, ge=0, description="largest gradient norm; 0: no clipping")


class Schedule(Settings):
    """The learning rate over the steps."""

    kind: Literal["cosine", "linear", "constant", "inverse_sqrt", "wsd"] = Field(
        "cosine", description="shape after warm-up; wsd: stable, then a linear decay"
    )
    warmup_fraction: Real = Field(
        0.01, ge=0, le=1, description="share of the decay steps to warm up in"
    )
    warmup_steps: int | None = Field(
        None, ge=0, description="steps to warm up in; none: by warmup_fraction"
    )
    decay_steps: int | None = Field(
        None, ge=1, description="steps to reach min_lr; none: all steps"
    )
    decay_fraction: Real = Field(
        0.2, gt=0, le=1, description="wsd: the last share of the decay steps, in which it decays"
    )
    min_lr: Real = Field(0.0, ge=0, description="learning rate after the decay")


class Train(Settings):
    """One training run."""

    steps: int | None = Field(
        None, ge=1, description="length of the run in optimizer steps; 300 where none is given"
    )
    samples: int | None = Field(None, ge=1, description="length in sequences instead")
    tokens: int | None = Field(None, ge=1, description="length in tokens instead")
    micro_batch_size: int = Field(
        8, ge=1, le=10_000, description="sequences a data rank computes at once"
    )
    global_batch_size: int = Field(
        16, ge=1, le=100_000_000, description="sequences a step, over all data ranks"
    )
    rampup_start: int | None = Field(
        None, ge=1, description="global batch to begin with; none: the full one at once"
    )
    rampup_increment: int = Field(1, ge=1, description="sequences by which it grows each time")
    rampup_samples: int = Field(1, ge=1, description="sequences after which it is full")
    skip_steps: tuple[str, ...] = Field(
        (), description="ranges such as 120-140 of steps whose data is passed over, untrained"
    )
    precision: Literal["fp32", "bf16", "fp16"] = Field("fp32", description="of the computation")
    loss_scale: Real = Field(0.0, ge=0, description="fp16: fixed loss scale; 0: dynamic")
    loss_scale_power: int = Field(16, ge=0, le=32, description="fp16: it starts at 2 to this power")
    loss_scale_window: int = Field(1000, ge=1, description="fp16: good steps until it doubles")
    loss_scale_hysteresis: int = Field(2, ge=1, description="fp16: overflows until it halves")
    min_loss_scale: Real = Field(1.0, gt=0, description="fp16: never below this")
    device: Literal["auto", "cuda", "cpu"] = Field(
        "auto", description="auto: GPUs when there are enough for the layout"
    )
    cpu_fallback: bool = Field(
        False, description="device auto: run on the CPU when there are too few GPUs"
    )
    processes: int | None = Field(
        None, ge=1, description="number of processes, if to be checked against the layout"
    )
    nodes: int = Field(
        1, ge=1, description="nodes that a cluster's scheduler is asked for; elsewhere one is used"
    )
    threads: int = Field(
        1,
        ge=1,
        le=1_000,
        description="CPU threads a process; results depend on it in their last bits",
    )
    recompute: Literal["none", "selective", "full"] = Field(
        "none", description="made again in backward: nothing, attention's core, whole blocks"
    )
    compile: Literal["auto", "on", "off"] = Field(
        "auto", description="torch.compile of blocks and loss; auto: on a GPU, where it is possible"
    )
    attention: Literal["auto", "flash", "cudnn"] = Field(
        "auto", description="attention's kernel on a GPU; auto: torch's choice"
    )
    eval_interval: int = Field(100, ge=1, description="steps between validations")
    eval_batches: int = Field(8, ge=1, description="global batches a validation")
    checkpoint_interval: int = Field(100, ge=1, description="steps between checkpoints")
    check_interval: int | None = Field(
        None, ge=1, description="steps between checks that all copies are equal; none: no checks"
    )
    keep_last: int = Field(2, ge=1, description="checkpoints kept")
    keep_every: int | None = Field(
        None, ge=1, description="checkpoints at multiples of this step are kept for good"
    )
    async_checkpoint: bool = Field(
        True, description="write checkpoints beside the next steps, from a copy in memory"
    )
    exit_after: Real | None = Field(
        None, gt=0, description="minutes after which to save and leave with exit code 75"
    )
    hang_timeout: Real = Field(
        900.0, ge=0, description="seconds without progress that end the run as hung; 0: never"
    )
    max_bad_steps: int = Field(
        20, ge=1, description="steps in a row with a non-finite loss or gradient that end the run"
    )
    spike_deviations: Real = Field(
        6.0, ge=0, description="standard deviations above recent losses that are reported; 0: none"
    )
    log_interval: int = Field(10, ge=1, description="steps between log lines")
    timers: bool = Field(
        False, description="time forward, backward, reduction, optimizer; costs some speed"
    )
    memory_check: bool = Field(
        True, description="refuse a layout that by the estimate does not fit the GPU"
    )
    peak_tflops: Real | None = Field(
        None, gt=0, description="a GPU's peak, for the MFU; none: by its name, where known"
    )
    wandb_project: str | None = Field(
        None, description="Weights & Biases project to log to, if that package is installed"
    )
    continue_from: str | None = Field(
        None, description="a checkpoint (or Hugging Face folder, for its weights) to start from"
    )
    continue_mode: Literal["extend", "branch", "weights"] = Field(
        "extend",
        description="extend: the same run, longer; branch: other settings from there on; "
        "weights: a new run from these weights",
    )

    @model_validator(mode="after")
    def _one_length(self) -> "Train":
        given = [name for name in ("steps", "samples", "tokens") if getattr(self, name) is not None]
        if len(given) > 1:
            found = " and ".join(f"{name} = {getattr(self, name)}" for name in given)
            raise ValueError(
                f"the length is given by one of steps, samples and tokens, not by {found}; set the "
                "others to null"
            )
        return self

    @field_validator("skip_steps")
    @classmethod
    def _ranges(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            match = re.fullmatch(r"(\d+)-(\d+)", text)
            if not match or not 1 <= int(match[1]) <= int(match[2]):
                raise ValueError(f"{text!r} is no range of steps such as 120-140")
        return value


NOT_DECIDING = frozenset(
    {
        "micro_batch_size", "device", "cpu_fallback", "processes", "nodes", "threads", "recompute",
        "compile", "attention",
        "eval_interval", "eval_batches", "checkpoint_interval", "keep_last", "keep_every",
        "check_interval",
        "async_checkpoint", "exit_after", "hang_timeout", "max_bad_steps", "spike_deviations",
        "log_interval", "timers", "memory_check", "peak_tflops", "wandb_project",
    }
)  # fmt: skip
"""Settings of ``train`` that do not decide the weights; whatever is not named here does."""

LOSS_SCALING = frozenset(
    {
        "loss_scale", "loss_scale_power", "loss_scale_window", "loss_scale_hysteresis",
        "min_loss_scale",
    }
)  # fmt: skip
"""Settings of ``train`` that decide the weights under fp16 only."""
