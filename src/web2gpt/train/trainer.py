"""The training loop, as each rank runs it.

Invariant: step k's batch, learning rate and randomness are functions of the settings and k alone,
and all else that it depends on is in the checkpoint; so a run that was killed anywhere ends with
the same weights and losses, bit for bit, as one that was not.
"""

import math
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist

from web2gpt.checkpoint.format import Index, State, step_folder
from web2gpt.checkpoint.joined import JoinedCheckpoint
from web2gpt.checkpoint.load import WholeWeights, load_state, newest_checkpoint
from web2gpt.checkpoint.save import drop_old, reference_tokens, save_checkpoint
from web2gpt.config.derive import BatchPlan, world_equation
from web2gpt.errors import InputError, Web2gptError
from web2gpt.io.atomic import write_json
from web2gpt.model.initialization import initial_tensor
from web2gpt.parallel.engine import Engine, Setup, StepResult
from web2gpt.parallel.state import EngineState
from web2gpt.tokens.samples import Samples
from web2gpt.train.batches import Batches
from web2gpt.train.job import DONE, Job
from web2gpt.train.metrics import Metrics
from web2gpt.train.schedule import learning_rate
from web2gpt.train.stop import StopRequest


class DivergedError(Web2gptError):
    """The loss is no number any more."""


def train(job: Job, device: torch.device) -> bool:
    """Train from the newest checkpoint, or from the start, to the last step.

    False if a request to stop came first; then a checkpoint has been saved.
    """
    start = starting_point(job)
    stage = job.stage
    setup = Setup(
        stage.model,
        job.vocab_size,
        stage.parallel,
        stage.optimizer,
        stage.train,
        device,
        stage.run.seed,
    )
    with ExitStack() as stack:
        checkpoint = stack.enter_context(JoinedCheckpoint(start)) if start else None
        if checkpoint:
            engine = Engine(setup, WholeWeights(checkpoint))
            state = load_state(engine, checkpoint)
        else:
            engine = Engine(setup, partial(initial_tensor, model=stage.model, seed=stage.run.seed))
            state = State(step=0, optimizer_steps=0, samples=0, tokens=0)
    leads = engine.grid.rank == 0
    if leads:
        where = f"carries on from {start}" if start else "starts at step 0"
        _say(f"run {job.identity} {where}; {world_equation(stage.parallel)} on {device.type}")
        _say(BatchPlan.of(stage.train, stage.parallel).equation())
    metrics = Metrics(job.run_folder, state.step) if leads else None
    return Trainer(job, engine, state, metrics).run()


def starting_point(job: Job) -> Path | None:
    """The newest whole checkpoint of this run, else the one it extends. Rank 0 looks."""
    choice: list[str | Path | None] = [None]
    if dist.get_rank() == 0:
        newest, faults = newest_checkpoint(job.run_folder)
        if job.run_folder.is_dir():
            drop_old(job.run_folder, keep=sys.maxsize)
        for fault in faults:
            _say(f"{fault} An older one is taken.")
        choice = [newest or job.stage.train.continue_from]
    dist.broadcast_object_list(choice)
    path = Path(choice[0]) if choice[0] else None
    if path and Index.read(path).step > job.stage.train.steps:
        raise InputError(f"{path}: beyond train.steps = {job.stage.train.steps}; raise it.")
    return path


@dataclass
class Pace:
    """Tokens a second since the last look."""

    tokens: int = 0
    since: float = 0.0

    def rate(self, tokens: int) -> float:
        now = time.perf_counter()
        rate = (tokens - self.tokens) / (now - self.since) if self.since else 0.0
        self.tokens, self.since = tokens, now
        return rate


class Trainer:
    """The loop over steps. ``metrics`` is given to rank 0 only."""

    def __init__(self, job: Job, engine: Engine, state: State, metrics: Metrics | None):
        self.job, self.engine, self.state, self.metrics = job, engine, state, metrics
        self.settings = job.stage.train
        plan = BatchPlan.of(self.settings, job.stage.parallel)
        self.plan = plan
        rank, device = engine.grid.data_rank, engine.setup.device
        self.batches = Batches(Samples(job.manifest, "train"), plan, rank, device)
        valid = Samples(job.manifest, "valid")
        self.valid = Batches(valid, plan, rank, device) if len(valid) else None
        self.stop = StopRequest()
        self.pace = Pace()
        self.started = time.perf_counter()

    def run(self) -> bool:
        """All steps that are left. True when the last one is done and saved."""
        steps = self.settings.steps
        self.pace = Pace(self.state.tokens, time.perf_counter())
        for step in range(self.state.step + 1, steps + 1):
            self._step(step)
            if step % self.settings.eval_interval == 0 or step == steps:
                self._evaluate(step)
            stops = self.stop.is_agreed()
            if step % self.settings.checkpoint_interval == 0 or step == steps or stops:
                self._save()
            if stops and step < steps:
                _say(f"stopped on request after step {step}; run again to carry on")
                return False
        if self.metrics:
            self._finish(self.metrics)
        return True

    def _step(self, step: int) -> None:
        stage, size = self.job.stage, self.plan.global_batch_size
        lr = learning_rate(step, self.settings.steps, stage.optimizer, stage.schedule)
        result = self.engine.train_step(self.batches.of(step - 1), lr, step)
        if not math.isfinite(result.loss):
            raise DivergedError(
                f"train: the loss of step {step} is {result.loss}; the last checkpoint is from "
                "before it. Lower optimizer.lr, or change the precision."
            )
        samples = step * size
        self.state = State(
            step=step,
            optimizer_steps=self.state.optimizer_steps + (not result.skipped),
            samples=samples,
            tokens=samples * stage.model.n_positions,
        )
        if self.metrics:
            self._report(self.metrics, result, lr)

    def _report(self, metrics: Metrics, result: StepResult, lr: float) -> None:
        state = self.state
        rate = self.pace.rate(state.tokens)
        row = {
            "step": state.step,
            "samples": state.samples,
            "tokens": state.tokens,
            "loss": result.loss,
            "lr": lr,
            "grad_norm": result.grad_norm,
            "tokens_per_second": round(rate, 1),
        }
        metrics.add(row | ({"skipped": True} if result.skipped else {}))
        if state.step % self.settings.log_interval == 0 or state.step == self.settings.steps:
            _say(
                f"step {state.step:,}/{self.settings.steps:,}  tokens {state.tokens:,}  "
                f"loss {result.loss:.4f}  lr {lr:.3g}  grad norm {result.grad_norm:.3f}  "
                f"{rate:,.0f} tokens/s{'  skipped: overflow' if result.skipped else ''}"
            )

    def _evaluate(self, step: int) -> None:
        if self.valid is None:
            return
        count = self.settings.eval_batches
        loss = self.engine.evaluate(self.valid.of_several(count), count * self.plan.accumulation)
        if self.metrics:
            self.metrics.add({"step": step, "valid_loss": loss})
            _say(f"step {step:,}: validation loss {loss:.4f}")
        self.pace.since = time.perf_counter()

    def _save(self) -> None:
        inner = EngineState(self.engine)
        stage = self.job.stage
        state = State(
            step=self.state.step,
            optimizer_steps=inner.optimizer_steps,
            samples=self.state.samples,
            tokens=self.state.tokens,
            loss_scaler=inner.loss_scaler,
            random={"seed": stage.run.seed},
            schedule=stage.schedule.model_dump(mode="json"),
            layout=stage.parallel.model_dump(mode="json"),
        )
        tokens = reference_tokens(
            stage.model.n_positions, self.settings.micro_batch_size, self.job.vocab_size
        )
        if self.metrics:
            self.metrics.sync()
        save_checkpoint(
            self.engine,
            self.job.run_folder,
            self.job.identity,
            state,
            tokens.to(self.engine.setup.device),
            keep=self.settings.keep_last,
        )
        self.pace.since = time.perf_counter()

    def _finish(self, metrics: Metrics) -> None:
        metrics.close()
        last = metrics.last_values()
        done = {
            "identity": self.job.identity,
            "step": self.state.step,
            "checkpoint": str(self.job.run_folder / step_folder(self.state.step)),
            "tokens": self.state.tokens,
            "loss": last.get("loss"),
            "valid_loss": last.get("valid_loss"),
            "seconds": round(time.perf_counter() - self.started, 1),
        }
        write_json(self.job.work / DONE, done)


def _say(line: str) -> None:
    if dist.get_rank() == 0:
        print(f"train: {line}", file=sys.stderr, flush=True)
