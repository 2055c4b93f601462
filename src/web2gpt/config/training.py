"""Settings of the model and its training."""

from typing import Literal

from pydantic import Field, model_validator

from web2gpt.config.base import Real, Settings


class Model(Settings):
    """GPT-2's sizes, under Hugging Face's names."""

    n_layer: int = Field(4, ge=1, description="blocks")
    n_embd: int = Field(128, ge=1, description="hidden size")
    n_head: int = Field(4, ge=1, description="attention heads")
    n_positions: int = Field(128, ge=1, description="sequence length, in tokens")
    activation_function: Literal["gelu_new", "gelu"] = Field("gelu_new", description="of the MLP")
    embd_pdrop: Real = Field(0.0, ge=0, lt=1, description="dropout after the embeddings")
    attn_pdrop: Real = Field(0.0, ge=0, lt=1, description="dropout of attention weights")
    resid_pdrop: Real = Field(0.0, ge=0, lt=1, description="dropout before each residual sum")
    layer_norm_epsilon: Real = Field(1e-5, gt=0, description="of all layer norms")
    initializer_range: Real = Field(0.02, gt=0, description="standard deviation of initial weights")
    vocab_multiple: int = Field(
        128, ge=1, description="the vocabulary is padded to a multiple of this times tensor"
    )

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "Model":
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd = {self.n_embd} is not a multiple of n_head = {self.n_head}")
        return self


class Parallel(Settings):
    """The layout: processes = tensor x pipeline x data."""

    tensor: int = Field(1, ge=1, description="ranks that share each layer")
    pipeline: int = Field(1, ge=1, description="stages that the layers are split into")
    data: int = Field(1, ge=1, description="replicas that share the global batch")
    zero: Literal[0, 1, 2, 3] = Field(
        1, description="what data ranks share: 1 optimizer, 2 and gradients, 3 and parameters"
    )
    offload: bool = Field(False, description="keep the optimizer's state in the CPU's memory")


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

    kind: Literal["cosine", "linear", "constant"] = Field(
        "cosine", description="shape after warm-up"
    )
    warmup_fraction: Real = Field(
        0.01, ge=0, le=1, description="share of the decay steps to warm up in"
    )
    decay_steps: int | None = Field(
        None, ge=1, description="steps to reach min_lr; none: all steps"
    )
    min_lr: Real = Field(0.0, ge=0, description="learning rate after the decay")


class Train(Settings):
    """One training run."""

    steps: int = Field(300, ge=1, description="optimizer steps")
    micro_batch_size: int = Field(8, ge=1, description="sequences a data rank computes at once")
    global_batch_size: int = Field(16, ge=1, description="sequences a step, over all data ranks")
    precision: Literal["fp32", "bf16", "fp16"] = Field("fp32", description="of the computation")
    device: Literal["auto", "cuda", "cpu"] = Field(
        "auto", description="auto: GPUs when there are enough for the layout"
    )
    cpu_fallback: bool = Field(
        False, description="device auto: run on the CPU when there are too few GPUs"
    )
    processes: int | None = Field(
        None, ge=1, description="number of processes, if to be checked against the layout"
    )
    threads: int = Field(
        1, ge=1, description="CPU threads a process; results depend on it in their last bits"
    )
    recompute: Literal["none", "selective", "full"] = Field(
        "none", description="made again in backward: nothing, attention's core, whole blocks"
    )
    eval_interval: int = Field(100, ge=1, description="steps between validations")
    eval_batches: int = Field(8, ge=1, description="global batches a validation")
    checkpoint_interval: int = Field(100, ge=1, description="steps between checkpoints")
    keep_last: int = Field(2, ge=1, description="checkpoints kept")
    log_interval: int = Field(10, ge=1, description="steps between log lines")
    continue_from: str | None = Field(
        None, description="a checkpoint to extend or branch from, by path"
    )
