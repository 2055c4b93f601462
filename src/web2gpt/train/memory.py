"""Memory of a rank by kind, in closed form.

Sources: weights, gradients and optimizer as DeepSpeed 0.19.8 keeps them, after Rajbhandari et al.
2020 (ZeRO, arXiv:1910.02054); activations after Korthikanti et al. 2022 (arXiv:2205.05198, table
2): a block keeps s b h (34 + 5 a s / h) bytes in 16 bits with dropout, of which tensor parallelism
divides all but 10, and sequence parallelism all but 4: what attention and MLP read, which is kept
as gathered, not gathered again. Stage i of a 1F1B pipeline keeps up to p - i micro-batches.

s = positions, b = micro-batch, h = width, a = heads, t = tensor, p = pipeline.
"""

from dataclasses import dataclass, field
from typing import Literal

from web2gpt.config.derive import BatchPlan, padded_vocab_size
from web2gpt.config.training import Model, Parallel, Train
from web2gpt.parallel.deepspeed_config import BUCKET, REUSE
from web2gpt.train.counts import rank_parameters, stage_blocks

WORKSPACE = 800_000_000  # CUDA's context, NCCL, matrix products; measured by nvidia-smi, roughly
BUCKETS = 2 * BUCKET  # elements: one bucket for sums of gradients, one for what is gathered


@dataclass(frozen=True)
class Method:
    """How blocks and loss compute. The default is this package's; old Megatron kept attention's
    s x s matrices (eager), and 12 bytes a logit: 16 bits twice, float32 twice."""

    attention: Literal["fused", "eager"] = "fused"
    logit_bytes: int | None = None  # None: their own type, in which the gradient replaces them


@dataclass(frozen=True)
class Memory:
    """Bytes on one GPU. ``host``: what offload keeps in the CPU's memory instead."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    buffers: float
    host: float = 0.0

    @property
    def total(self) -> float:
        """At the worst moment, on the GPU."""
        kinds = (self.weights, self.gradients, self.optimizer, self.activations, self.logits)
        return sum(kinds) + self.buffers

    @property
    def allocated(self) -> float:
        """What torch counts: without the context of CUDA and libraries."""
        return self.total - WORKSPACE


@dataclass(frozen=True)
class Case:
    """What memory is to be worked out for."""

    model: Model
    layout: Parallel
    train: Train
    vocab_size: int
    method: Method = field(default_factory=Method)

    @property
    def padded_vocab(self) -> int:
        return padded_vocab_size(self.vocab_size, self.model, self.layout)


def rank_memory(case: Case, stage: int) -> Memory:
    """Memory of a rank of a pipeline's ``stage``."""
    layout, train = case.layout, case.train
    count = rank_parameters(case.model, layout, case.padded_vocab, stage)
    weights, gradients, optimizer = state_bytes(train.precision, layout)
    kept, working = _activations(case, stage)
    logits = _logits(case) if stage == layout.pipeline - 1 else 0.0
    if train.recompute == "full":  # a block at work and the logits never meet
        working = max(0.0, working - logits)
    moved = optimizer * count if layout.offload else 0.0
    return Memory(
        weights=weights * count + _gathered(train.precision, layout, count),
        gradients=gradients * count,
        optimizer=optimizer * count - moved,
        activations=kept + working,
        logits=logits,
        buffers=WORKSPACE + (BUCKETS * element_bytes(train.precision) if layout.zero else 0),
        host=moved,
    )


def worst_memory(case: Case) -> Memory:
    """That of the rank that needs most: of the first stage or the last."""
    stages = sorted({0, case.layout.pipeline - 1})
    return max((rank_memory(case, stage) for stage in stages), key=lambda memory: memory.total)


def element_bytes(precision: str) -> int:
    """Bytes of a number in the type of the computation."""
    return 4 if precision == "fp32" else 2


def state_bytes(precision: str, layout: Parallel) -> tuple[float, float, float]:
    """Bytes a parameter of weights, gradients, and optimizer with its float32 copy.

    DeepSpeed's optimizers: BF16_Optimizer (bf16, ZeRO 1) keeps float32 gradients whole, and bf16
    ones only until they are added; its ZeRO optimizer makes a float32 copy of this rank's part at
    the step.
    """
    size, d, zero = element_bytes(precision), layout.data, layout.zero
    if zero == 0:
        return size, size, 8 + (0 if precision == "fp32" else 4)
    if zero == 1 and precision == "bf16":
        return 2, 4, 12 / d
    accumulated = 2 if precision == "fp16" else 4
    if zero == 1:
        return size, size, (12 + 4) / d
    if zero == 2:
        return size, accumulated / d, (12 + 4) / d
    return size / d, accumulated / d, (12 + 4) / d


def _gathered(precision: str, layout: Parallel, count: int) -> float:
    """What ZeRO 3 holds of whole weights, beside its parts, when the forward pass ends: those that
    the backward pass needs again before ``REUSE`` others. With one data rank parts are whole."""
    if layout.zero < 3 or layout.data == 1:
        return 0.0
    return min(count, REUSE // 2) * element_bytes(precision)


def _activations(case: Case, stage: int) -> tuple[float, float]:
    """What micro-batches in flight keep, and what the block at work adds to it."""
    model, layout, train = case.model, case.layout, case.train
    h, t = model.n_embd, layout.tensor
    row = model.n_positions * train.micro_batch_size * h  # s b h
    size = element_bytes(train.precision)
    masks = 2 if model.resid_pdrop else 0  # a byte each, after attention and MLP
    whole = 4 * size + masks  # of the 16 elements: inputs of norms, attention and MLP
    divided = 12 * size
    if layout.sequence:
        whole, divided = 2 * size, 14 * size + masks
    core = row / t * _core_bytes(case)
    block = row * (whole + divided / t) + core
    blocks = stage_blocks(model, layout, case.padded_vocab)[stage]
    in_flight = min(layout.pipeline - stage, BatchPlan.of(train, layout).accumulation)
    inputs = row * size / (t if layout.sequence else 1)
    if train.recompute == "full":
        return in_flight * (blocks + 1) * inputs, block
    if train.recompute == "selective":
        return in_flight * (blocks * (block - core) + inputs), core
    return in_flight * (blocks * block + inputs), 0.0


def _core_bytes(case: Case) -> float:
    """Bytes that attention's s x s matrices take for each number of a row: 5 a s / h in 16 bits."""
    if case.method.attention == "fused":
        return 0.0
    size = element_bytes(case.train.precision)
    return case.model.n_head * case.model.n_positions / case.model.n_embd * (2 * size + 1)


def _logits(case: Case) -> float:
    size = element_bytes(case.train.precision)
    each = case.method.logit_bytes or size
    tokens = case.model.n_positions * case.train.micro_batch_size
    return tokens * (case.padded_vocab / case.layout.tensor) * each
