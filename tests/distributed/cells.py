"""What ranks do in the tests: train a tiny GPT-2 under one layout, and tell what came of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from deepspeed.accelerator import get_accelerator
from torch import Tensor

from web2gpt.checkpoint.format import KINDS, State
from web2gpt.checkpoint.joined import JoinedCheckpoint
from web2gpt.checkpoint.load import WholeWeights, load_state, newest_checkpoint
from web2gpt.checkpoint.save import reference_tokens, save_checkpoint
from web2gpt.config.derive import BatchPlan
from web2gpt.config.training import Model, Optimizer, Parallel, Train
from web2gpt.model.gpt2 import GPT2
from web2gpt.model.initialization import initial_tensor, initialize
from web2gpt.parallel.engine import Engine, Setup
from web2gpt.parallel.split import cut
from web2gpt.parallel.state import EngineState

MODEL = Model(n_layer=4, n_embd=32, n_head=4, n_positions=16, vocab_multiple=16)
VOCAB = 211  # odd, and padded under every layout
BATCH = 8
SEED = 7


@dataclass(frozen=True)
class Cell:
    """One layout and its variations; the global batch is always the same."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    zero: int = 1
    micro: int = 2
    precision: str = "fp32"
    recompute: str = "none"
    offload: bool = False
    dropout: float = 0.0
    steps: int = 10

    @property
    def size(self) -> int:
        return self.tensor * self.pipeline * self.data

    def __str__(self) -> str:
        words = [f"{self.tensor}x{self.pipeline}x{self.data}", f"zero{self.zero}"]
        words += [self.precision] * (self.precision != "fp32")
        words += [f"micro{self.micro}"] * (self.micro != 2)
        words += [self.recompute] * (self.recompute != "none")
        words += ["offload"] * self.offload + ["dropout"] * bool(self.dropout)
        return "-".join(words)

    def setup(self) -> Setup:
        layout = Parallel(
            tensor=self.tensor,
            pipeline=self.pipeline,
            data=self.data,
            zero=self.zero,
            offload=self.offload,
        )
        train = Train(
            micro_batch_size=self.micro,
            global_batch_size=BATCH,
            precision=self.precision,
            recompute=self.recompute,
        )
        drops = dict.fromkeys(("embd_pdrop", "attn_pdrop", "resid_pdrop"), self.dropout)
        model = MODEL.model_copy(update=drops)
        return Setup(model, VOCAB, layout, OPTIMIZER, train, torch.device("cpu"), SEED)


OPTIMIZER = Optimizer(lr=1e-3, weight_decay=0.1, grad_clip=0.5)


def can_fp16() -> bool:
    """Whether DeepSpeed finds this CPU able to compute in fp16."""
    return bool(get_accelerator().is_fp16_supported())


def batch(step: int) -> Tensor:
    """The global batch of a step: (BATCH, T + 1)."""
    generator = torch.Generator().manual_seed(1000 + step)
    # Unequal frequencies, so that there is something to learn and gradients are large.
    draws = torch.rand(BATCH, MODEL.n_positions + 1, generator=generator) ** 3
    return (draws * VOCAB).long()


def micro_batches(engine: Engine, step: int) -> Any:
    plan = BatchPlan.of(engine.setup.train, engine.setup.layout)
    tokens = batch(step)
    for index in range(plan.accumulation):
        first = (index * plan.data + engine.grid.data_rank) * plan.micro_batch_size
        rows = tokens[first : first + plan.micro_batch_size]
        yield rows[:, :-1], rows[:, 1:]


def initial(name: str, shape: tuple[int, ...]) -> Tensor:
    return initial_tensor(name, shape, MODEL, SEED)


def train(cell: Cell) -> dict[str, Any]:
    """Losses and norms of each step, on each rank."""
    engine = Engine(cell.setup(), initial)
    results = _steps(engine, 0, cell.steps)
    valid = engine.evaluate(micro_batches(engine, 99), BATCH // cell.micro // cell.data)
    engine.close()
    return results | {"valid": valid}


def train_plainly(steps: int = 10) -> dict[str, Any]:
    """The independent truth: torch alone, the whole batch at once."""
    torch.set_num_threads(1)
    gpt = GPT2(MODEL, VOCAB)
    initialize(gpt.tensors(), MODEL, SEED)
    matrices = [p for p in gpt.parameters() if p.dim() >= 2]
    vectors = [p for p in gpt.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": OPTIMIZER.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=OPTIMIZER.lr,
        betas=(OPTIMIZER.beta1, OPTIMIZER.beta2),
        eps=OPTIMIZER.eps,
    )

    def loss_of(step: int) -> Tensor:
        rows = batch(step)
        logits = gpt(rows[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())

    losses, norms = [], []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(step)
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(gpt.parameters(), OPTIMIZER.grad_clip)))
        optimizer.step()
        losses.append(float(loss.detach()))
    with torch.no_grad():
        valid = float(loss_of(99))
    return {"losses": losses, "norms": norms, "valid": valid}


def save_then_go_on(cell: Cell, folder: Path, before: int, after: int) -> dict[str, Any]:
    """Train ``before`` steps, save, train ``after`` more; results of the latter."""
    engine = Engine(cell.setup(), initial)
    _steps(engine, 0, before)
    save(engine, folder, before)
    return _steps(engine, before, after, close=True)


def resume(cell: Cell, folder: Path, after: int, fault: str = "") -> dict[str, Any]:
    """Load the newest checkpoint under ``cell``, and train ``after`` steps.

    ``unequal`` names what does not read the same, to the bit, as it stands in the files.
    ``fault``: a fault planted after loading, for the tests' own test.
    """
    path, faults = newest_checkpoint(folder)
    assert path is not None, faults
    with JoinedCheckpoint(path) as checkpoint:
        engine = Engine(cell.setup(), WholeWeights(checkpoint))
        state = load_state(engine, checkpoint)
        inner = EngineState(engine)
        if fault == "lost moment":
            name = "h.1.ln_1.bias"
            inner.write("exp_avg", name, torch.zeros_like(inner.read("exp_avg", name)))
        if fault == "wrong step count":
            inner.optimizer_steps += 1
        unequal = [
            f"{kind}/{name}"
            for name, local in engine.tensors.items()
            for kind in KINDS
            if not torch.equal(
                inner.read(kind, name), cut(checkpoint.whole(kind, name), local.slice)
            )
        ]
    counted = inner.optimizer_steps == state.optimizer_steps
    result = _steps(engine, state.step, after, close=True)
    return result | {"unequal": unequal, "counted": counted}


def save(engine: Engine, folder: Path, step: int) -> None:
    inner = EngineState(engine)
    samples = step * BATCH
    state = State(
        step,
        inner.optimizer_steps,
        samples,
        samples * MODEL.n_positions,
        loss_scaler=inner.loss_scaler,
    )
    rows = engine.setup.train.micro_batch_size
    tokens = reference_tokens(MODEL.n_positions, rows, VOCAB)
    save_checkpoint(engine, folder, "identity", state, tokens, keep=2)


def _steps(engine: Engine, first: int, count: int, *, close: bool = False) -> dict[str, Any]:
    results = [
        engine.train_step(micro_batches(engine, step), OPTIMIZER.lr, step)
        for step in range(first, first + count)
    ]
    if close:
        engine.close()
    return {
        "losses": [result.loss for result in results],
        "norms": [result.grad_norm for result in results],
        "skipped": [result.skipped for result in results],
    }
