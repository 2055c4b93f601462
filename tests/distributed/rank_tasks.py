"""What ranks do in the tests: train under one layout, and tell what came of it."""

import math
import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from cells import SGD_LR, STEPS, Cell, micro_batches, take_steps
from deepspeed.accelerator import get_accelerator
from deepspeed.utils import safe_get_full_grad
from planted import drift, fault_in_the_model, gradient_becomes, gradient_is_lost, untie
from torch import Tensor

from web2gpt.checkpoint import save as saving
from web2gpt.checkpoint.format import KINDS, State
from web2gpt.checkpoint.joined import JoinedCheckpoint
from web2gpt.checkpoint.load import WholeWeights, load_state, newest_checkpoint
from web2gpt.parallel.deepspeed_internals import (
    before_optimizer_step,
    is_partitioned,
    partition_of,
)
from web2gpt.parallel.engine import Engine, MicroBatch
from web2gpt.parallel.sanity import DriftError, check, faults
from web2gpt.parallel.split import cut
from web2gpt.parallel.state import EngineState


def device() -> torch.device:
    """Of this rank: the CPU, or its GPU."""
    return torch.device(get_accelerator().current_device_name())


def build(cell: Cell) -> Engine:
    if cell.compile == "on":
        torch.compiler.reset()  # a process keeps a few variants of a function, one run's at most
    return Engine(cell.setup(device()), cell.initial)


def train(cell: Cell, fault: str = "", steps: int = STEPS) -> dict[str, Any]:
    """Losses and norms of each step, then what the trainer's own checks find."""
    with fault_in_the_model(fault if fault != "untied copy" else ""):
        engine = build(cell)
        if fault == "untied copy":
            untie(engine)
        results = take_steps(engine, 0, steps)
        valid = engine.evaluate(micro_batches(engine, 99), cell.plan.accumulation)
    wrong = faults(engine, steps - sum(results["skipped"]))
    engine.close()
    return results | {"valid": valid, "faults": wrong}


def train_compiled(cell: Cell, backend: str) -> dict[str, Any]:
    """As ``train``, with blocks and loss compiled by ``backend``; ``graphs``: how many there were.

    One compiled block serves all: they must not be compiled one by one.
    """
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    with ExitStack() as stack:
        stack.enter_context(patch("web2gpt.parallel.compile.BACKEND", backend))
        stack.enter_context(patch("web2gpt.parallel.compile.missing", lambda device: ""))
        if backend == "inductor":
            stack.enter_context(torch._inductor.config.patch({"cpp.cxx": (None, "g++")}))
        found = train(cell)
    return found | {"graphs": torch._dynamo.utils.counters["stats"]["unique_graphs"]}


def train_and_look_at_imports(cell: Cell, module: str) -> bool:
    """Whether training has loaded ``module``."""
    train(cell, steps=1)
    return module in sys.modules


def train_by_sgd(cell: Cell, folder: Path, fault: str = "") -> dict[str, Any]:
    """The same with plain gradient descent, whose weights rounding does not blow up."""

    def sgd(module: torch.nn.Module, *rest: object) -> torch.optim.Optimizer:
        return torch.optim.SGD(module.parameters(), lr=SGD_LR)

    with fault_in_the_model(fault):
        with patch("web2gpt.parallel.engine.adamw", sgd):
            engine = build(cell)
        results = take_steps(engine, 0, STEPS, SGD_LR)
    save(engine, folder, STEPS)
    engine.close()
    return results


def accumulate(cell: Cell, fault: str = "") -> float:
    """How far the gradient of a step is from the mean of its micro-batches' own gradients.

    Relative to the largest number of each tensor; nothing is changed by the steps.
    """
    with fault_in_the_model(fault):
        engine = build(cell)
        found: dict[str, Tensor] = {}
        before_optimizer_step(engine.deepspeed, lambda: found.update(_gradients(engine)))
        parts = list(micro_batches(engine, 0))
        whole = _gradients_of(engine, iter(parts), found)
        engine.set_global_batch_size(cell.micro * cell.data)
        single = [_gradients_of(engine, iter([part]), found) for part in parts]
        engine.close()
    apart = [
        (value - sum(one[name] for one in single) / len(parts)).abs().max() / value.abs().max()
        for name, value in whole.items()
    ]
    return float(max(apart))


def _gradients_of(
    engine: Engine, parts: Iterator[MicroBatch], found: dict[str, Tensor]
) -> dict[str, Tensor]:
    engine.train_step(parts, lr=0.0)
    return dict(found)


def _gradients(engine: Engine) -> dict[str, Tensor]:
    tensors = engine.tensors.items()
    return {name: safe_get_full_grad(local.parameter).clone() for name, local in tensors}


def layers_of_stages(cell: Cell) -> list[str]:
    """The names of the parameters that this rank holds."""
    engine = build(cell)
    names = list(engine.tensors)
    engine.close()
    return names


def find_drift(cell: Cell, kind: str, name: str) -> str:
    """What the trainer's check says of a planted drift; it must say nothing before."""
    engine = build(cell)
    take_steps(engine, 0, 1)
    check(engine, 1, 1)
    drift(engine, kind, name)
    try:
        check(engine, 1, 1)
    except DriftError as error:
        return str(error)
    finally:
        engine.close()
    return ""


def weights_not_as_given(cell: Cell) -> list[str]:
    """What is not as given before any step: the parameters whose float32 weights are not equal to
    the bit, and those whose low-precision copies are not these, rounded."""
    engine = build(cell)
    state = EngineState(engine)
    found = faults(engine, 0)  # looks at copies too, but not at ZeRO 3's
    for name, local in engine.tensors.items():
        given = cut(cell.initial(name, local.shape), local.slice)
        if not torch.equal(state.read("weight", name).cpu(), given):
            found.append(name)
        if is_partitioned(local.parameter):
            held = local.parameter.ds_tensor.detach().cpu()
            part = partition_of(local.parameter, given, engine.grid.data_rank, cell.data)
            found += [] if torch.equal(held, part.to(held.dtype)) else [f"copy of {name}"]
    engine.close()
    return found


def lose_gradient(cell: Cell, name: str) -> list[str]:
    """What the trainer's check says when a parameter never had a gradient."""
    engine = build(cell)
    with gradient_is_lost(engine, name):
        take_steps(engine, 0, 2)
    found = faults(engine, 2)
    engine.close()
    return found


def meet_bad_gradient(cell: Cell, value: float) -> dict[str, Any]:
    """Two good steps, one with a spoilt gradient, two good ones; ``same``: it changed nothing."""
    engine = build(cell)
    state = EngineState(engine)
    parts = [take_steps(engine, 0, 2)]
    before = {name: state.read("weight", name).clone() for name in engine.tensors}
    with gradient_becomes(engine, value):
        parts.append(take_steps(engine, 2, 1))
    same = all(torch.equal(state.read("weight", name), old) for name, old in before.items())
    scaler = state.loss_scaler
    parts.append(take_steps(engine, 3, 2))
    steps, wrong = state.optimizer_steps, faults(engine, 4)
    engine.close()
    joined = {key: [value for part in parts for value in part[key]] for key in parts[0]}
    return joined | {"same": same, "scaler": scaler, "optimizer_steps": steps, "faults": wrong}


def overflow_at_the_smallest_scale(cell: Cell, steps: int) -> dict[str, Any]:
    """Steps that all overflow, at a loss scale that cannot fall."""
    setup = cell.setup(device())
    stuck = setup.train.model_copy(update={"min_loss_scale": 2.0**setup.train.loss_scale_power})
    engine = Engine(replace(setup, train=stuck), cell.initial)
    with gradient_becomes(engine, math.inf):
        results = take_steps(engine, 0, steps)
    engine.close()
    return results


def save_then_go_on(
    cell: Cell, folder: Path, before: int, after: int, overflows: int = 0
) -> dict[str, Any]:
    """Train ``before`` steps, save, train ``after`` more; results of the latter.

    The first ``overflows`` steps have a gradient that is infinite.
    """
    engine = build(cell)
    if overflows:
        with gradient_becomes(engine, math.inf):
            take_steps(engine, 0, overflows)
    take_steps(engine, overflows, before - overflows)
    save(engine, folder, before)
    results = take_steps(engine, before, after)
    engine.close()
    return results


def die_in_a_save(cell: Cell, folder: Path, moment: str) -> None:
    """Carry on from ``folder``, and be killed in the middle of the next save."""
    engine, state = _loaded(cell, folder)
    take_steps(engine, state.step, 1)
    with patch(f"web2gpt.checkpoint.save.{moment}", _die):
        save(engine, folder, state.step + 1)


def train_until_killed(cell: Cell, folder: Path, every: int, steps: int) -> None:
    """Train, saving every so many steps, until one rank is killed after a random step."""
    chance = random.Random(str(cell))  # the same for all ranks
    last, victim = chance.randrange(every, steps), chance.randrange(cell.size)
    engine = build(cell)
    for step in range(last):
        take_steps(engine, step, 1)
        if (step + 1) % every == 0:
            save(engine, folder, step + 1)
    if engine.grid.rank == victim:
        _die()
    take_steps(engine, last, 1)


def resume(cell: Cell, folder: Path, after: int, fault: str = "") -> dict[str, Any]:
    """Load the newest checkpoint under ``cell``, and train ``after`` steps.

    ``unequal`` names what does not read the same, to the bit, as it stands in the files.
    ``fault``: a fault planted after loading, for the tests' own test.
    """
    engine, state = _loaded(cell, folder)
    inner = EngineState(engine)
    if fault == "lost moment":
        name = "h.1.ln_1.bias"
        inner.write("exp_avg", name, torch.zeros_like(inner.read("exp_avg", name)))
    if fault == "wrong step count":
        inner.optimizer_steps += 1
    if fault == "lost loss scale":
        inner.loss_scaler = dict(inner.loss_scaler or {}, cur_scale=2.0**16)
    path, _ = newest_checkpoint(folder)
    assert path is not None
    with JoinedCheckpoint(path) as checkpoint:
        unequal = [
            f"{kind}/{name}"
            for name, local in engine.tensors.items()
            for kind in KINDS
            if not torch.equal(
                inner.read(kind, name).cpu(), cut(checkpoint.whole(kind, name), local.slice)
            )
        ]
    counted = inner.optimizer_steps == state.optimizer_steps
    wrong = faults(engine, state.optimizer_steps)
    scaler = inner.loss_scaler == state.loss_scaler
    scale = engine.loss_scale
    results = take_steps(engine, state.step, after)
    engine.close()
    return results | {
        "step": state.step,
        "unequal": unequal,
        "counted": counted and scaler,
        "scale": scale,
        "faults": wrong,
    }


def save(engine: Engine, folder: Path, step: int) -> None:
    inner = EngineState(engine)
    setup = engine.setup
    samples = step * setup.train.global_batch_size
    state = State(
        step,
        inner.optimizer_steps,
        samples,
        samples * setup.model.n_positions,
        loss_scaler=inner.loss_scaler,
    )
    draft = saving.Draft(engine, folder, "identity", state, {})
    draft.publish(draft.write())
    if engine.grid.rank == 0:
        saving.drop_old(folder, keep=2)


def _loaded(cell: Cell, folder: Path) -> tuple[Engine, State]:
    path, found = newest_checkpoint(folder)
    assert path is not None, found
    with JoinedCheckpoint(path) as checkpoint:
        engine = Engine(cell.setup(device()), WholeWeights(checkpoint))
        return engine, load_state(engine, checkpoint)


def _die(*arguments: object, **rest: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
