"""The tiny GPT-2 of the distributed tests, and the layouts it is trained under."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from web2gpt.config.derive import BatchPlan
from web2gpt.config.training import Model, Optimizer, Parallel, Train
from web2gpt.model.initialization import initial_tensor
from web2gpt.parallel.engine import Engine, MicroBatch, Setup

MODEL = Model(n_layer=4, n_embd=32, n_head=4, n_positions=16, vocab_multiple=16)
VOCAB = 211  # odd, and padded under every layout
SEED = 7
STEPS = 10
OPTIMIZER = Optimizer(lr=1e-3, weight_decay=0.1, grad_clip=0.5)
SGD_LR = 0.1


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
        return "-".join(words)

    def setup(self, device: torch.device | None = None) -> Setup:
        layout = Parallel(
            tensor=self.tensor,
            pipeline=self.pipeline,
            data=self.data,
            zero=self.zero,  # type: ignore[arg-type]
            offload=self.offload,
            sequence=self.sequence,
        )
        train = Train(
            micro_batch_size=self.micro,
            global_batch_size=self.batch,
            precision=self.precision,  # type: ignore[arg-type]
            recompute=self.recompute,  # type: ignore[arg-type]
            compile=self.compile,  # type: ignore[arg-type]
        )
        drops = dict.fromkeys(("embd_pdrop", "attn_pdrop", "resid_pdrop"), self.dropout)
        model = MODEL.model_copy(update=drops)
        return Setup(model, VOCAB, layout, OPTIMIZER, train, device or torch.device("cpu"), SEED)


def batch(step: int, size: int = 8) -> Tensor:
    """The global batch of a step: (size, T + 1)."""
    generator = torch.Generator().manual_seed(1000 + step)
    # Unequal frequencies, so that there is something to learn and gradients are large.
    draws = torch.rand(size, MODEL.n_positions + 1, generator=generator) ** 3
    return (draws * VOCAB).long()


def micro_batches(engine: Engine, step: int) -> Iterator[MicroBatch]:
    """This data rank's part of the global batch of a step."""
    setup = engine.setup
    plan = BatchPlan.of(setup.train, setup.layout)
    tokens = batch(step, plan.global_batch_size).to(setup.device)
    for index in range(plan.accumulation):
        first = (index * plan.data + engine.grid.data_rank) * plan.micro_batch_size
        rows = tokens[first : first + plan.micro_batch_size]
        yield rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def initial(name: str, shape: tuple[int, ...]) -> Tensor:
    return initial_tensor(name, shape, MODEL, SEED)


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
