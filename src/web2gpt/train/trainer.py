"""The training loop, as each rank runs it.

Invariant: step k's batch, learning rate and randomness are functions of the settings and k alone,
and all else that it depends on is in the checkpoint; so a run that was killed anywhere ends with
the same weights and losses, bit for bit, as one that was not.
"""

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist

from web2gpt.checkpoint.format import State, step_folder
from web2gpt.config.derive import BatchPlan, world_equation
from web2gpt.config.length import Length
from web2gpt.errors import InputError
from web2gpt.io.atomic import write_json
from web2gpt.parallel.engine import Engine, Setup, StepResult
from web2gpt.parallel.sanity import DriftError, check
from web2gpt.tokens.samples import Samples
from web2gpt.train.batches import Batches, Rows
from web2gpt.train.blame import Blame
from web2gpt.train.checkpoints import NOTHING, Checkpoints, full_state
from web2gpt.train.chronicle import Chronicle, Step, diverged, useless
from web2gpt.train.estimate import Estimate, Situation
from web2gpt.train.estimate_options import training_tokens
from web2gpt.train.estimate_table import table_lines
from web2gpt.train.fitting import require_fit
from web2gpt.train.job import DONE, Job
from web2gpt.train.memory import Case
from web2gpt.train.metrics import Metrics
from web2gpt.train.pulse import Heart
from web2gpt.train.schedule import learning_rate
from web2gpt.train.spikes import BatchDocuments, forget_spikes
from web2gpt.train.start import find_start, opened
from web2gpt.train.start_log import note_start
from web2gpt.train.stop import Agreement, Request
from web2gpt.train.timers import Timers
from web2gpt.train.tracker import Tracker
from web2gpt.train.voice import Voice


def train(job: Job, device: torch.device, request: Request, heart: Heart) -> bool:
    """Train from the newest checkpoint, or from the start, to the last step.

    False if a request to stop came first; then a checkpoint has been saved.
    """
    stage = job.stage
    length = Length.of(stage.train, stage.model.n_positions)
    voice = Voice(silent=dist.get_rank() > 0, total=length.steps)
    start = find_start(job, voice.say)
    voice.say(f"run {job.identity} {start}; {world_equation(stage.parallel)} on {device.type}")
    voice.say(BatchPlan.of(stage.train, stage.parallel).equation())
    _introduce(job, device, voice)
    setup = Setup(
        stage.model,
        job.vocab_size,
        stage.parallel,
        stage.optimizer,
        stage.train,
        device,
        stage.run.seed,
    )
    with opened(start, job) as (weights, restore):
        engine = Engine(setup, weights)
        if engine.compilation.note:
            voice.say(engine.compilation.note)
        heart.beat()
        state = restore(engine)
    voice.start_bar(state.step)
    try:
        agreement = Agreement(request, stage.train.exit_after)
        trainer = Trainer(job, engine, state, voice=voice, agreement=agreement, heart=heart)
        if not start.is_of(job):
            trainer.checkpoints.saved = NOTHING
        return trainer.run()
    finally:
        voice.close()


def _introduce(job: Job, device: torch.device, voice: Voice) -> None:
    """Say what the run will take. Raises ``ConfigError`` if it does not fit the GPU."""
    stage = job.stage
    gpu = torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else None
    manifest = Samples(job.manifest, "train", check="none").manifest
    situation = Situation(
        job.vocab_size, training_tokens(manifest), gpu, on_gpu=device.type == "cuda"
    )
    for line in table_lines(Estimate.of(stage, situation)):
        voice.say(f"  {line}")
    if gpu and stage.train.memory_check:
        require_fit(Case(stage.model, stage.parallel, stage.train, job.vocab_size), gpu)


class Trainer:
    """The loop over steps."""

    def __init__(
        self,
        job: Job,
        engine: Engine,
        state: State,
        *,
        voice: Voice,
        agreement: Agreement,
        heart: Heart,
    ):
        self.job, self.engine, self.state = job, engine, state
        self.settings = job.stage.train
        self.voice, self.agreement, self.heart = voice, agreement, heart
        self.length = Length.of(self.settings, job.stage.model.n_positions)
        # A branch with another global batch goes on where the data of its origin ended.
        self.offset = state.samples - self.length.first_sample(state.step + 1)
        samples = Samples(job.manifest, "train")
        self.batches = self._reader(samples, ahead=True)
        self.valid = {name: self._reader(reader) for name, reader in validation_sets(job)}
        self.blame = Blame(engine.tensors)
        self.checkpoints = Checkpoints(job, engine, state.step, voice.say)
        self.documents = BatchDocuments(samples, job.documents)
        self.chronicle = self._chronicle() if engine.grid.rank == 0 else None
        self.started = time.perf_counter()

    def run(self) -> bool:
        """All steps that are left. True when the last one is done and saved."""
        steps = self.length.steps
        self._watch()
        if self.chronicle:
            self.chronicle.pace.restart()
        for step in range(self.state.step + 1, steps + 1):
            if self._is_stopped():
                return False
            self._take(step)
            self._check(step)
            if step % self.settings.eval_interval == 0 or step == steps:
                self._evaluate(step)
            if step % self.settings.checkpoint_interval == 0 or step == steps:
                self._save(wait=step == steps or not self.settings.async_checkpoint)
        self._save(wait=True)
        if self.chronicle:
            self._finish(self.chronicle)
        return True

    def _check(self, step: int) -> None:
        """See that all copies are equal, if this step's turn has come. Collective."""
        interval = self.settings.check_interval
        if interval is None or step % interval:
            return
        try:
            check(self.engine, step, self.state.optimizer_steps)
        except DriftError:  # on all ranks
            with suppress(InputError):  # old ones stay: one may be the last that was checked
                self.checkpoints.publish(tidy=False)
            raise

    def _is_stopped(self) -> bool:
        """Look for a request to stop, and save if there is one. Collective."""
        stops, writing = self.agreement.reach(writing=self.checkpoints.is_writing)
        if self.checkpoints.is_open and not writing:
            self.checkpoints.publish()
        if not stops:
            return False
        self._save(wait=True, even_if_bad=True)
        self.voice.say(f"stopped on request after step {self.state.step:,}; run again to carry on")
        return True

    def _take(self, number: int) -> None:
        self.heart.step = number
        if self.length.is_skipped(number):
            self._pass_over(number)
            return
        rows = self.rows(number)
        stage = self.job.stage
        lr = learning_rate(number, self.length.steps, stage.optimizer, stage.schedule)
        self.engine.set_global_batch_size(rows.plan.global_batch_size)
        result = self.engine.train_step(self.batches.of(rows), lr, number)
        self.state = self._after(number, result)
        self.heart.beat()
        step = Step(self.state, rows, lr, result, self.engine.loss_scale)
        if self.chronicle:
            self.chronicle.tell(step)
        self._judge(step)

    def _judge(self, step: Step) -> None:
        """End the run when there were too many bad steps in a row. Collective."""
        if self.state.bad_in_a_row >= self.settings.max_bad_steps:
            raise diverged(
                step, self.blame.verdict(), self.documents.of(step.rows), self._last_good()
            )
        self._watch()

    def _watch(self) -> None:
        """Look for the parameter to blame while steps go wrong, or if the next may be the last."""
        if not self.state.bad_in_a_row:
            self.blame.forget()
        if self.state.bad_in_a_row or self.settings.max_bad_steps == 1:
            self.blame.watch()

    def _last_good(self) -> str:
        """Where to go on from. Collective: a checkpoint that is being written is one."""
        try:
            self.checkpoints.finish()
        except InputError as error:
            return f"{error} "
        saved = self.checkpoints.saved
        return f"The last checkpoint is of step {saved:,}. " if saved > 0 else "None is saved yet. "

    def _after(self, number: int, result: StepResult | None) -> State:
        skipped, bad = result is not None and result.skipped, result is not None and result.bad
        samples = self.offset + self.length.first_sample(number + 1)
        passed = result is None
        return replace(
            self.state,
            step=number,
            optimizer_steps=self.state.optimizer_steps + (not passed and not skipped),
            samples=samples,
            tokens=self.state.tokens
            + (0 if passed else self.length.batch_size(number) * self.job.stage.model.n_positions),
            skipped=self.state.skipped + skipped,
            bad_in_a_row=self.state.bad_in_a_row + 1 if bad else 0,
        )

    def _pass_over(self, number: int) -> None:
        self.state = self._after(number, None)
        if self.chronicle:
            self.chronicle.tell_skipped_range(number)

    def rows(self, number: int) -> Rows:
        """The global batch of a step."""
        size = self.length.batch_size(number)
        plan = BatchPlan.of(self.settings, self.job.stage.parallel, size)
        return Rows(self.offset + self.length.first_sample(number), plan)

    def _following(self, rows: Rows) -> Rows | None:
        """The batch to read ahead while ``rows`` are computed."""
        number = self.heart.step + 1
        ahead = number <= self.length.steps and not self.length.is_skipped(number)
        return self.rows(number) if ahead else None

    def _evaluate(self, step: int) -> None:
        plan = BatchPlan.of(self.settings, self.job.stage.parallel)
        count, size = self.settings.eval_batches, plan.global_batch_size
        batches = [Rows(number * size, plan) for number in range(count)]
        losses = {
            name: self.engine.evaluate(reader.of_several(batches), count * plan.accumulation)
            for name, reader in self.valid.items()
        }
        self.heart.beat()
        if self.chronicle and losses:
            self.chronicle.tell_validation(step, losses)
            self.chronicle.pace.restart()
        if step == self.length.steps and not all(map(math.isfinite, losses.values())):
            raise useless(step, losses, self._last_good())

    def _save(self, *, wait: bool, even_if_bad: bool = False) -> None:
        """Save, but not amid bad steps unless the run is about to end."""
        if self.state.bad_in_a_row and not even_if_bad and self.state.step < self.length.steps:
            return
        if self.chronicle:
            self.chronicle.metrics.sync()
        self.heart.beat()
        if self.state.step == self.checkpoints.saved:
            self.checkpoints.finish()
        else:
            self.checkpoints.save(full_state(self.engine, self.state, self.job), wait=wait)
        self.heart.beat()
        if self.chronicle:
            self.chronicle.pace.restart()

    def _reader(self, samples: Samples, *, ahead: bool = False) -> Batches:
        return Batches(
            samples,
            self.engine.grid.data_rank,
            self.engine.setup.device,
            following=self._following if ahead else lambda rows: None,
            beat=self.heart.beat,
        )

    def _chronicle(self) -> Chronicle:
        job, device = self.job, self.engine.setup.device
        forget_spikes(job.run_folder, after=self.state.step)
        project = self.settings.wandb_project
        settings: dict[str, Any] = job.stage.model_dump(mode="json")
        tracker = Tracker(project, job.identity, settings) if project else None
        note_start(job, self.state.step)
        return Chronicle(
            job,
            Metrics(job.run_folder, self.state.step, tracker),
            self.voice,
            device=device,
            batches=self.batches,
            documents=self.documents,
            timers=Timers(self.engine.deepspeed, device) if self.settings.timers else None,
        )

    def _finish(self, chronicle: Chronicle) -> None:
        for fault in self.checkpoints.tidy():  # what was killed before it had
            self.voice.say(fault)
        chronicle.metrics.close()
        last = chronicle.metrics.last_values()
        done = {
            "identity": self.job.identity,
            "step": self.state.step,
            "checkpoint": str(self.job.run_folder / step_folder(self.state.step)),
            "tokens": self.state.tokens,
            "loss": last.get("loss"),
            "valid_loss": last.get("valid_loss"),
            "skipped_steps": self.state.skipped,
            "seconds": round(time.perf_counter() - self.started, 1),
        }
        write_json(self.job.work / DONE, done)


def validation_sets(job: Job) -> Iterator[tuple[str, Samples]]:
    """Column of metrics and samples of each validation set of the index that is not empty."""
    names = Samples(job.manifest, "train", check="none").manifest["splits"]
    for split in names:
        if split == "valid" or split.startswith("valid-"):
            samples = Samples(job.manifest, split)
            if len(samples):
                yield f"valid_loss{split.removeprefix('valid').replace('-', '_')}", samples
