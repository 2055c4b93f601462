"""One case of train.py, in a process of its own: ``python train_case.py CASE`` (JSON).

The contender is built, takes its warm-up steps, then the timed ones. Rank 0 writes result.json.
"""

import importlib.metadata
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from web2gpt.config.train_stage import TrainStage

SEED = 1234
POSITIONS = 1024
LR_WARMUP = 20  # steps
WEIGHT_DECAY, BETAS, EPS, CLIP = 0.1, (0.9, 0.95), 1e-8, 1.0


class Size(NamedTuple):
    n_layer: int
    n_embd: int
    n_head: int
    n_positions: int
    micro_batch_size: int
    batch: int
    steps: int


SIZES = {
    "tiny": Size(2, 32, 2, 32, 2, 4, 3),
    "124M": Size(12, 768, 12, POSITIONS, 64, 512, 20),
    "345M": Size(24, 1024, 16, POSITIONS, 64, 512, 12),
    "774M": Size(36, 1280, 20, POSITIONS, 32, 512, 8),
    "1.5B": Size(48, 1600, 25, POSITIONS, 16, 512, 5),
    "1.5B-20-heads": Size(48, 1600, 20, POSITIONS, 16, 512, 5),  # which tensor ranks can share
}


@dataclass(frozen=True)
class Case:
    """What is measured. ``settings``: more of the section ``train``, as text; and ``sequence``."""

    name: str
    contender: str
    size: str
    micro_batch_size: int
    batch: int
    steps: int
    warmup: int
    dropout: float
    precision: str
    layout: str
    device: str
    compile: bool
    tokens: str
    vocab_size: int
    nanogpt: str
    breakdown: bool
    lr: float
    folder: str
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def shape(self) -> Size:
        return SIZES[self.size]

    @property
    def world_size(self) -> int:
        ranks = parallel_of(self.layout)
        return ranks["tensor"] * ranks["pipeline"] * ranks["data"]


@dataclass
class Contender:
    """``step`` takes the step of that number, to its end, and gives the loss."""

    step: Callable[[int], float]
    estimate_bytes: float | None = None
    compiled: bool = False


class Windows:
    """Windows of T + 1 tokens of a .bin, in an order that the seed decides; goes on in epochs."""

    def __init__(self, path: str, length: int, vocab_size: int):
        index = Path(path).with_suffix(".idx")
        if index.is_file():
            from web2gpt.tokens.indexed import Header

            dtype = Header.read(index).dtype
        else:
            dtype = np.dtype("<u2")
        self._tokens = np.memmap(path, dtype=dtype, mode="r")
        if not int(self._tokens[: 1 << 22].max()) < vocab_size:
            raise SystemExit(f"{path}: holds ids beyond --vocab-size {vocab_size}")
        self._length = length
        count = (len(self._tokens) - 1) // length
        self._order = np.random.default_rng(SEED).permutation(count)

    def batch(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """(count, T + 1)"""
        starts = self._order[np.arange(first, first + count) % len(self._order)] * self._length
        return np.stack(
            [self._tokens[start : start + self._length + 1] for start in starts]
        ).astype(np.int64)


def parallel_of(layout: str) -> dict[str, int]:
    """The section ``parallel`` of ``2x1x1-1``: tensor x pipeline x data - ZeRO, 1 if not said."""
    grid, _, zero = layout.partition("-")
    tensor, pipeline, data = map(int, grid.split("x"))
    return {"tensor": tensor, "pipeline": pipeline, "data": data, "zero": int(zero or 1)}


def model_sizes(shape: Size) -> dict[str, int]:
    """What of the section ``model`` a size decides."""
    names = ("n_layer", "n_embd", "n_head", "n_positions")
    return {name: getattr(shape, name) for name in names}


def learning_rate(case: Case, step: int) -> float:
    return case.lr * min(1.0, step / LR_WARMUP)


def stage_of(case: Case) -> "TrainStage":
    """The settings with which this package trains it."""
    from web2gpt.config.load import parse_settings
    from web2gpt.config.train_stage import TrainStage

    settings = dict(case.settings)
    sequence = settings.pop("sequence", "off")
    values = {
        "run": {"seed": SEED},
        "model": {
            **model_sizes(case.shape),
            **dict.fromkeys(("embd_pdrop", "attn_pdrop", "resid_pdrop"), case.dropout),
        },
        "parallel": {**parallel_of(case.layout), "sequence": sequence == "on"},
        "optimizer": {
            "beta1": BETAS[0], "beta2": BETAS[1], "eps": EPS,
            "weight_decay": WEIGHT_DECAY, "grad_clip": CLIP,
        },
        "train": {
            "micro_batch_size": case.micro_batch_size,
            "global_batch_size": case.batch,
            "precision": case.precision,
            **settings,
        },
    }  # fmt: skip
    return parse_settings(TrainStage, json.dumps(values))


def ours(case: Case) -> Contender:
    """This package's engine and reader of batches, as its trainer uses them."""
    from web2gpt.config.derive import BatchPlan
    from web2gpt.model.initialization import initial_tensor
    from web2gpt.parallel.engine import Engine, Setup
    from web2gpt.parallel.processes import join, meeting_by_file
    from web2gpt.train.batches import Batches, Rows
    from web2gpt.train.memory import Case as MemoryCase
    from web2gpt.train.memory import worst_memory

    stage = stage_of(case)
    rank = int(os.environ["RANK"])
    store = meeting_by_file(Path(case.folder) / "rendezvous", rank, case.world_size)
    device = join(store, rank, case.world_size, threads=stage.train.threads)
    setup = Setup(
        stage.model, case.vocab_size, stage.parallel, stage.optimizer, stage.train, device, SEED
    )
    engine = Engine(setup, partial(initial_tensor, model=stage.model, seed=SEED))
    plan = BatchPlan.of(stage.train, stage.parallel)

    def following(rows: Rows) -> Rows:
        return Rows(rows.first + case.batch, plan)

    windows = Windows(case.tokens, case.shape.n_positions, case.vocab_size)
    batches = Batches(windows, engine.grid.data_rank, device, following=following)

    def step(number: int) -> float:
        rows = Rows((number - 1) * case.batch, plan)
        return engine.train_step(batches.of(rows), learning_rate(case, number), number).loss

    memory = worst_memory(MemoryCase(stage.model, stage.parallel, stage.train, case.vocab_size))
    return Contender(step, memory.allocated, compiled=engine.compilation.on)


def build(case: Case) -> Contender:
    if case.contender == "ours":
        return ours(case)
    from train_rivals import RIVALS

    if case.settings or case.world_size > 1:
        raise SystemExit(f"{case.contender}: takes micro_batch_size only, on one device")
    windows = Windows(case.tokens, case.shape.n_positions, case.vocab_size)
    return Contender(RIVALS[case.contender](case, windows), compiled=case.compile)


def measure(case: Case) -> dict[str, Any]:
    """Build it, warm up, and time each step from the end of the one before."""
    began = time.perf_counter()
    contender = build(case)
    losses = [contender.step(number) for number in range(1, case.warmup + 1)]
    start_seconds = time.perf_counter() - began
    clock = EventClock() if case.device == "cuda" else WallClock()
    clock.mark()
    for number in range(case.warmup + 1, case.warmup + case.steps + 1):
        losses.append(contender.step(number))
        clock.mark()
    seconds = clock.seconds()
    step = statistics.median(seconds)
    rate = case.batch * case.shape.n_positions / step
    result = {
        "tokens_per_second": rate,
        "tflops": rate * flops_per_token(case) / case.world_size / 1e12,
        "step_seconds": seconds,
        "losses": losses,
        "start_seconds": start_seconds,
        "peak_bytes": peak_bytes(case.device),
        "estimate_bytes": contender.estimate_bytes,
        "compiled": contender.compiled,
        "machine": machine(case.device),
    }
    if case.breakdown:
        from train_breakdown import breakdown

        number = case.warmup + case.steps + 1
        result["breakdown"] = breakdown(partial(contender.step, number), case.device)
    return result


def flops_per_token(case: Case) -> float:
    from web2gpt.config.training import Model
    from web2gpt.train.counts import flops_per_token

    return flops_per_token(Model(**model_sizes(case.shape)), case.vocab_size)


class EventClock:
    """Times between marks on the GPU's own clock."""

    def __init__(self) -> None:
        self._events: list[Any] = []

    def mark(self) -> None:
        import torch

        self._events.append(torch.cuda.Event(enable_timing=True))
        self._events[-1].record()

    def seconds(self) -> list[float]:
        import torch

        torch.cuda.synchronize()
        pairs = zip(self._events[:-1], self._events[1:], strict=True)
        return [one.elapsed_time(other) / 1e3 for one, other in pairs]


class WallClock:
    def __init__(self) -> None:
        self._times: list[float] = []

    def mark(self) -> None:
        self._times.append(time.perf_counter())

    def seconds(self) -> list[float]:
        return [b - a for a, b in zip(self._times[:-1], self._times[1:], strict=True)]


def peak_bytes(device: str) -> int:
    """What torch had allocated at the peak; on a CPU, the process's memory."""
    if device == "cuda":
        import torch

        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def machine(device: str) -> dict[str, str]:
    import torch

    names = ("torch", "deepspeed", "triton", "transformers")
    found = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "CPU",
        "python": sys.version.split()[0],
    }
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "none"
    return found


def main() -> None:
    values = json.loads(sys.argv[1])
    case = Case(**values)
    if case.contender == "product":
        from train_product import product

        result = product(case)
    else:
        result = measure(case)
    if os.environ["RANK"] == "0":
        path = Path(case.folder) / "result.json"
        path.with_suffix(".part").write_text(json.dumps(result))
        path.with_suffix(".part").rename(path)
    sys.stdout.flush()
    os._exit(0)  # without waiting for readers and the other ranks


if __name__ == "__main__":
    main()
