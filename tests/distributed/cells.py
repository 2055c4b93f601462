"""The tiny GPT-2 of the distributed tests, and the layouts it is trained under."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from web2gpt.config.derive import BatchPlan
from web2gpt.config.training import Model, Optimizer, Parallel, Train
from web2gpt.model.initialization import initial_tensor
from web2gpt.parallel.engine import Engine, MicroBatch, Setup
from web2gpt.parallel.parameters import WholeTensor

VOCAB = 211  # odd, and padded under every layout
SEED = 7
STEPS = 10
OPTIMIZER = Optimizer(lr=1e-3, weight_decay=0.1, grad_clip=0.5)
SGD_LR = 0.1

# How far results may be from those of a plain torch loop in float32.
RELATIVE = 1e-6  # losses and norms under fp32
WEIGHTS = 1e-6  # absolute, after SGD
BOUNDS = {"bf16": (3e-4, 1e-2), "fp16": (3e-4, 1e-2)}  # losses, norms


@dataclass(frozen=True)
class Shape:
    """Sizes of a model and of its vocabulary."""

    n_layer: int = 4
    n_embd: int = 32
    n_head: int = 4
    n_positions: int = 16
    vocab_multiple: int = 16
    vocab: int = VOCAB

    @property
    def model(self) -> Model:
        sizes = {name: size for name, size in asdict(self).items() if name != "vocab"}
        return Model(**sizes)

    def __str__(self) -> str:
        usual = asdict(TINY)
        return "-".join(f"{n}{size}" for n, size in asdict(self).items() if size != usual[n])


TINY = Shape()
MODEL = TINY.model


@dataclass(frozen=True)
class Cell:
    """One layout and its variations; the global batch is the same unless said."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    zero: int = 1
    micro: int = 2
    precision: str = "fp32"
    recompute: str = "none"
    offload: bool = False
    sequence: bool = False
    dropout: float = 0.0
    batch: int = 8
    compile: str = "off"
    shape: Shape = TINY
    loss_scale: float = 0.0
    grad_clip: float = OPTIMIZER.grad_clip

    @property
    def size(self) -> int:
        return self.tensor * self.pipeline * self.data

    @property
    def plan(self) -> BatchPlan:
        return BatchPlan(self.micro, self.data, self.batch // (self.micro * self.data))

    def __str__(self) -> str:
        words = [f"{self.tensor}x{self.pipeline}x{self.data}", f"zero{self.zero}"]
        words += [self.precision] * (self.precision != "fp32")
        words += [f"micro{self.micro}"] * (self.micro != 2)
        words += [self.recompute] * (self.recompute != "none")
        words += [f"batch{self.batch}"] * (self.batch != 8)
        words += ["offload"] * self.offload + ["sequence"] * self.sequence
        words += ["dropout"] * bool(self.dropout)
        words += ["compiled"] * (self.compile == "on")
        words += [f"scale{self.loss_scale:g}"] * bool(self.loss_scale)
        words += [f"clip{self.grad_clip:g}"] * (self.grad_clip != OPTIMIZER.grad_clip)
        words += [str(self.shape)] * (self.shape != TINY)
        return "-".join(words)

    def setup(self, device: torch.device | None = None) -> Setup:
        layout = Parallel(
            tensor=self.tensor,
            pipeline=self.pipeline,
            data=self.data,
            zero=self.zero,
            offload=self.offload,
            sequence=self.sequence,
        )
        train = Train(
            micro_batch_size=self.micro,
            global_batch_size=self.batch,
            precision=self.precision,
            recompute=self.recompute,
            compile=self.compile,
            loss_scale=self.loss_scale,
        )
        drops = dict.fromkeys(("embd_pdrop", "attn_pdrop", "resid_pdrop"), self.dropout)
        model, vocab = self.shape.model.model_copy(update=drops), self.shape.vocab
        optimizer = OPTIMIZER.model_copy(update={"grad_clip": self.grad_clip})
        return Setup(model, vocab, layout, optimizer, train, device or torch.device("cpu"), SEED)

    @property
    def initial(self) -> WholeTensor:
        """The weights to start from."""
        return partial(initial_tensor, model=self.shape.model, seed=SEED)


def batch(
    step: int, size: int = 8, *, vocab: int = VOCAB, positions: int = MODEL.n_positions
) -> Tensor:
    """The global batch of a step: (size, T + 1)."""
    generator = torch.Generator().manual_seed(1000 + step)
    # Unequal frequencies, so that there is something to learn and gradients are large.
    draws = torch.rand(size, positions + 1, generator=generator) ** 3
    return (draws * vocab).long()


def micro_batches(engine: Engine, step: int) -> Iterator[MicroBatch]:
    """This data rank's part of the global batch of a step."""
    setup = engine.setup
    plan = BatchPlan.of(setup.train, setup.layout)
    sizes = {"vocab": setup.vocab_size, "positions": setup.model.n_positions}
    tokens = batch(step, plan.global_batch_size, **sizes).to(setup.device)
    for index in range(plan.accumulation):
        first = (index * plan.data + engine.grid.data_rank) * plan.micro_batch_size
        rows = tokens[first : first + plan.micro_batch_size]
        yield rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def take_steps(engine: Engine, first: int, count: int, lr: float = OPTIMIZER.lr) -> dict[str, Any]:
    """Losses, norms, and what was skipped, of ``count`` steps."""
    results = [
        engine.train_step(micro_batches(engine, step), lr, step)
        for step in range(first, first + count)
    ]
    return {
        "losses": [result.loss for result in results],
        "norms": [result.grad_norm for result in results],
        "skipped": [result.skipped for result in results],
        "bad": [result.bad for result in results],
    }
