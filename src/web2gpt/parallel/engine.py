"""One training step, one evaluation, under any layout.

Invariant: what goes in is this data rank's micro-batches in order; what comes out (loss, norm) is
about the whole global batch and the same on every rank, whatever the layout.

Without a pipeline DeepSpeed's plain engine runs ``GPT2`` with its layers split; with one, its
pipeline engine runs the stages.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.accelerator import get_accelerator
from deepspeed.runtime.pipe.topology import PipelineParallelGrid, PipeModelDataParallelTopology
from deepspeed.utils import set_z3_leaf_modules
from torch import Tensor

from web2gpt.config.derive import padded_vocab_size
from web2gpt.config.training import Model, Optimizer, Parallel, Train
from web2gpt.errors import ConfigError
from web2gpt.model.gpt2 import Block, parameter_shapes
from web2gpt.parallel import deepspeed_internals as internals
from web2gpt.parallel.attention import use_attention
from web2gpt.parallel.communication import gather_last
from web2gpt.parallel.compile import decide, loss_kernels
from web2gpt.parallel.cross_entropy import vocabulary_cross_entropy
from web2gpt.parallel.deepspeed_config import deepspeed_config
from web2gpt.parallel.dropout import Streams, has_dropout
from web2gpt.parallel.grid import Grid
from web2gpt.parallel.norm import clip_gradients, gradient_norm
from web2gpt.parallel.parameters import LocalTensor, WholeTensor, decay_groups, fill, local_tensors
from web2gpt.parallel.pipeline import build_pipeline, pipeline_name
from web2gpt.parallel.plain import build_plain, plain_name
from web2gpt.parallel.recompute import prepare_block

MicroBatch = tuple[Tensor, Tensor]
"""Tokens and targets, each (micro-batch, T) int64, on the engine's device."""


@dataclass(frozen=True)
class StepResult:
    """Mean loss (nats a token) and gradient norm of a global batch, before clipping.

    ``skipped``: the gradient holds NaN or infinity and was not applied; weights are as before.
    ``bad``: and that is no overflow of fp16 which a lower loss scale can mend.
    """

    loss: float
    grad_norm: float
    skipped: bool
    bad: bool = False


@dataclass(frozen=True)
class Setup:
    """All that an engine is built from."""

    model: Model
    vocab_size: int
    layout: Parallel
    optimizer: Optimizer
    train: Train
    device: torch.device
    seed: int = 0  # of dropout

    @property
    def padded_vocab(self) -> int:
        return padded_vocab_size(self.vocab_size, self.model, self.layout)


class Engine:
    """DeepSpeed's engine for one layout. Building, stepping and evaluating are collective.

    ``whole`` gives the weights to start from; see ``parallel.parameters``. The optimizer's float32
    weights are these to the bit, whatever the forward pass reads.
    """

    def __init__(self, setup: Setup, whole: WholeTensor):
        check_device(setup.train.precision, setup.device)
        self.setup = setup
        self.grid = Grid.of(setup.layout)
        self.tensors: Mapping[str, LocalTensor] = {}
        self._streams = self._dropout_streams()
        use_attention(setup.train.attention)
        self.compilation = decide(setup.train.compile, setup.device)
        self._kernels = loss_kernels(compiled=self.compilation.on)
        internals.forget_last_layout()
        topology = PipeModelDataParallelTopology(
            setup.layout.pipeline, setup.layout.tensor, setup.layout.data
        )
        module = self._pipeline(topology) if self.is_pipeline else self._plain()
        optimizer = adamw(module, setup.optimizer, setup.device)
        self.deepspeed: Any
        self.deepspeed, self.optimizer, _, _ = deepspeed.initialize(
            model=module,
            optimizer=optimizer,
            mpu=PipelineParallelGrid(topology=topology) if self._needs_mpu else None,
            config=deepspeed_config(setup.train, setup.layout, setup.optimizer),
        )
        # Not before: DeepSpeed makes float32 weights of the rounded ones, and rounded they lie
        # where small steps do not show: the forward pass would see most of the first ones late.
        fill(self.tensors, whole, self._put)
        if self.compilation.on:
            internals.restore_linear()
        internals.stay_at_smallest_scale(self.optimizer)
        internals.add_without_copies(self.optimizer)
        self._norm = 0.0
        if setup.layout.zero == 0:
            internals.before_optimizer_step(self.deepspeed, self._clip)
        self._settle()

    @property
    def is_pipeline(self) -> bool:
        return self.setup.layout.pipeline > 1

    @property
    def loss_scale(self) -> float | None:
        """What the loss is multiplied by under fp16; None under other precisions."""
        if self.setup.train.precision != "fp16":
            return None
        return float(internals.loss_scaler(self.optimizer).cur_scale)

    def set_global_batch_size(self, size: int) -> None:
        """The sequences of the steps that follow: during a ramp-up, fewer than in the end."""
        if size != self.deepspeed.train_batch_size():
            internals.set_global_batch_size(self.deepspeed, size)

    def train_step(
        self, micro_batches: Iterator[MicroBatch], lr: float, step: int = 0
    ) -> StepResult:
        """One optimizer step over this data rank's share of a global batch.

        Dropout follows from ``step``, the number of the step in the run. Nothing is applied if
        the gradient is not finite.
        """
        if self._streams:
            self._streams.begin_step(step)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        skipped_before = self.deepspeed.skipped_steps
        if self.is_pipeline:
            loss = float(self.deepspeed.train_batch(data_iter=micro_batches))
        else:
            loss = self._train_plain(micro_batches)
        skipped = self.deepspeed.skipped_steps > skipped_before
        bad = not math.isfinite(loss) or (skipped and not self._scale_can_fall())
        norm = self._norm if self.setup.layout.zero == 0 else self.deepspeed.get_global_grad_norm()
        return StepResult(loss, math.nan if norm is None else float(norm), skipped, bad)

    @torch.no_grad()
    def evaluate(self, micro_batches: Iterator[MicroBatch], count: int) -> float:
        """Mean loss over ``count`` micro-batches of each data rank."""
        if self.is_pipeline:
            return float(self.deepspeed.eval_batch(micro_batches, num_micro_batches=count))
        self.deepspeed.eval()
        losses = [self._loss(self.deepspeed(tokens), goal) for tokens, goal in micro_batches]
        self.deepspeed.train()
        return self._mean(torch.stack(losses).sum() / count)

    @torch.no_grad()
    def logits(self, tokens: Tensor, count: int) -> Tensor | None:
        """Logits (1, count, vocabulary), float32, of the first tokens of the first sequence of one
        micro-batch (B, T), on the last stage's ranks.

        B and T must be those of training: a pipeline's stages have agreed on them.
        """
        if self.is_pipeline:
            _, local = self.deepspeed.eval_batch(
                iter([(tokens, tokens)]), return_logits=True, num_micro_batches=1
            )
        else:
            self.deepspeed.eval()
            local = self.deepspeed(tokens)
            self.deepspeed.train()
        if not self.grid.is_last_stage:
            return None
        wanted = gather_last(local[:1, :count], self.grid.tensor)
        return wanted[..., : self.setup.vocab_size].float()

    def close(self) -> None:
        """Let go of DeepSpeed's hooks and buffers, so that another engine can be built."""
        self.deepspeed.destroy()

    def _settle(self) -> None:
        """Wait until weights stand as they were written: ZeRO 3 gathers them on a stream of its
        own, which does not wait for that of the writer. A step ends with reading the loss."""
        get_accelerator().synchronize()

    @property
    def _needs_mpu(self) -> bool:
        return not self.is_pipeline and self.setup.layout.tensor > 1

    def _plain(self) -> torch.nn.Module:
        setup = self.setup
        module = build_plain(
            setup.model,
            setup.padded_vocab,
            group=self.grid.tensor,
            device=setup.device,
            prepare=self._prepare,
            streams=self._streams,
        )
        self.tensors = self._named((plain_name(n), p) for n, p in module.named_parameters())
        if setup.layout.zero == 3:
            set_z3_leaf_modules(module, [Block])  # a block's parameters are gathered together
        return module

    def _pipeline(self, topology: PipeModelDataParallelTopology) -> torch.nn.Module:
        setup = self.setup
        module = build_pipeline(
            setup.model,
            setup.padded_vocab,
            group=self.grid.tensor,
            topology=topology,
            device=setup.device,
            loss=self._loss,
            prepare=self._prepare,
            streams=self._streams,
        )
        layers = setup.model.n_layer
        self.tensors = self._named(
            (pipeline_name(n, layers), p) for n, p in module.named_parameters()
        )
        return module

    def _named(
        self, parameters: Iterator[tuple[str, torch.nn.Parameter]]
    ) -> Mapping[str, LocalTensor]:
        setup, tensor = self.setup, self.grid.tensor
        return local_tensors(
            parameters,
            parameter_shapes(setup.model, setup.vocab_size),
            tensor=tensor.size,
            rank=tensor.rank,
            padded_vocab=setup.padded_vocab,
        )

    def _put(self, parameter: torch.nn.Parameter, value: Tensor) -> None:
        if self.setup.layout.zero == 0:
            parameter.copy_(value)
        else:
            internals.put_weight(parameter, value, self.grid.data_rank, self.setup.layout.data)

    def _prepare(self, block: Block, number: int) -> Block:
        setup = self.setup
        return prepare_block(
            block,
            number + 1,
            setup.train.recompute,
            self._streams,
            compiled=self.compilation.on,
        )

    def _dropout_streams(self) -> Streams | None:
        if not has_dropout(self.setup.model):
            return None
        return Streams(self.setup.seed, self.grid, self.setup.device)

    def _loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        return vocabulary_cross_entropy(
            logits, targets, self.setup.vocab_size, self.grid.tensor, self._kernels
        )

    def _train_plain(self, micro_batches: Iterator[MicroBatch]) -> float:
        losses = []
        for tokens, targets in micro_batches:
            if self._streams:
                self._streams.next_micro_batch()
            loss = self._loss(self.deepspeed(tokens), targets)
            self.deepspeed.backward(loss)
            self.deepspeed.step()
            losses.append(loss.detach())
        return self._mean(torch.stack(losses).mean())

    def _mean(self, value: Tensor) -> float:
        """Mean over data ranks."""
        if self.grid.data_group is not None:
            dist.all_reduce(value, group=self.grid.data_group)
            value = value / self.setup.layout.data
        return float(value)

    def _scale_can_fall(self) -> bool:
        """Whether a skipped step is no more than the search for fp16's loss scale."""
        train = self.setup.train
        if train.precision != "fp16" or train.loss_scale:
            return False
        return (self.loss_scale or 0.0) > train.min_loss_scale

    def _clip(self) -> None:
        parameters = [local.parameter for local in self.tensors.values()]
        self._norm = gradient_norm(parameters, self.grid)
        if not math.isfinite(self._norm):
            internals.skip_step(self.deepspeed, parameters)
        clip_gradients(parameters, self._norm, self.setup.optimizer.grad_clip)


def check_device(precision: str, device: torch.device) -> None:
    """Raise ``ConfigError`` if the device, the current one, cannot compute in this precision."""
    accelerator = get_accelerator()
    supported = {
        "fp32": lambda: True,
        "bf16": accelerator.is_bf16_supported,
        "fp16": accelerator.is_fp16_supported,
    }
    if not supported[precision]():
        other = next(name for name in ("bf16", "fp32") if name != precision and supported[name]())
        raise ConfigError(
            f"train.precision: {precision} is not supported by this {device.type}; {other} is"
        )


def adamw(
    module: torch.nn.Module, settings: Optimizer, device: torch.device
) -> torch.optim.Optimizer:
    """torch's AdamW over two groups; fused on GPUs. The learning rate is set at each step."""
    return torch.optim.AdamW(
        decay_groups(module.parameters(), settings.weight_decay),
        lr=settings.lr,
        betas=(settings.beta1, settings.beta2),
        eps=settings.eps,
        fused=device.type == "cuda",
    )
