"""When a run's state is saved, and how: while it waits, or beside the steps that follow."""

from concurrent.futures import Future, ThreadPoolExecutor

import torch.distributed as dist

from web2gpt.checkpoint.format import State
from web2gpt.checkpoint.save import Draft, Report, reference_tokens
from web2gpt.parallel.engine import Engine
from web2gpt.parallel.state import EngineState
from web2gpt.train.job import Job


class Checkpoints:
    """The checkpoints of one run. ``save`` and ``finish`` are collective.

    ``saved``: the last step that stands on disk, or is being written.
    """

    def __init__(self, job: Job, engine: Engine, saved: int):
        self._job, self._engine, self.saved = job, engine, saved
        self._writer = ThreadPoolExecutor(1, "checkpoint")
        self._draft: Draft | None = None
        self._report: Future[Report] | None = None

    @property
    def is_writing(self) -> bool:
        """Whether this rank's part of a checkpoint is still on its way to the disk."""
        return self._report is not None and not self._report.done()

    @property
    def is_open(self) -> bool:
        """Whether a checkpoint is not yet in its place; the same on all ranks."""
        return self._draft is not None

    def save(self, state: State, *, wait: bool) -> None:
        """Save, unless ``state`` is what was saved last. It is in its place afterwards, or, without
        ``wait``, after ``finish``."""
        self.finish()
        if state.step == self.saved:
            return
        stage = self._job.stage
        reference = reference_tokens(
            stage.model.n_positions, stage.train.micro_batch_size, self._job.vocab_size
        )
        draft = Draft(
            self._engine,
            self._job.run_folder,
            self._job.identity,
            state,
            reference.to(self._engine.setup.device),
        )
        self.saved = state.step
        self._draft, self._report = draft, self._writer.submit(draft.write)
        if wait:
            self.finish()

    def finish(self) -> None:
        """Put the open checkpoint, if any, into its place."""
        if self._draft is None or self._report is None:
            return
        train = self._job.stage.train
        report = self._report.result()
        self._draft.publish(report, keep=train.keep_last, keep_every=train.keep_every)
        self._draft = self._report = None


def full_state(engine: Engine, state: State, job: Job) -> State:
    """``state`` with what the engine knows. Collective over data ranks."""
    inner, stage = EngineState(engine), job.stage
    return State(
        step=state.step,
        optimizer_steps=inner.optimizer_steps,
        samples=state.samples,
        tokens=state.tokens,
        skipped=state.skipped,
        bad_in_a_row=state.bad_in_a_row,
        loss_scaler=inner.loss_scaler,
        random={"seed": stage.run.seed},
        schedule=stage.schedule.model_dump(mode="json"),
        layout=stage.parallel.model_dump(mode="json") | {"processes": dist.get_world_size()},
    )
