"""When a run's state is saved, and how: while it waits, or beside the steps that follow."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import torch.distributed as dist
from torch import Tensor

from web2gpt.checkpoint.format import State
from web2gpt.checkpoint.save import Draft, Report, drop_old
from web2gpt.parallel.engine import Engine
from web2gpt.parallel.state import EngineState
from web2gpt.train.job import Job

NOTHING = -1


class Checkpoints:
    """The checkpoints of one run. ``save``, ``publish`` and ``finish`` are collective.

    ``saved``: the last step that stands on disk, or is being written; 0 needs none, and
    ``NOTHING`` is where all steps so far were another run's.
    """

    def __init__(self, job: Job, engine: Engine, saved: int, say: Callable[[str], None]):
        self._job, self._engine, self.saved, self._say = job, engine, saved, say
        self._writer = ThreadPoolExecutor(1, "checkpoint")
        self._draft: Draft | None = None
        self._report: Future[Report] | None = None
        self._copies: dict[str, Tensor] = {}  # of the state, for one that is written beside steps
        self._deletion: Future[list[str]] | None = None  # of old ones

    @property
    def is_writing(self) -> bool:
        """Whether this rank's part of a checkpoint is still on its way to the disk."""
        return self._report is not None and not self._report.done()

    @property
    def is_open(self) -> bool:
        """Whether a checkpoint is not yet in its place; the same on all ranks."""
        return self._draft is not None

    def save(self, state: State, *, wait: bool) -> None:
        """Save ``state``: it is in its place afterwards, or without ``wait`` after ``publish``."""
        self.finish()
        job = self._job
        copies = self._copies if job.stage.train.async_checkpoint else {}
        draft = Draft(self._engine, job.run_folder, job.identity, state, copies)
        self.saved = state.step
        self._draft, self._report = draft, self._writer.submit(draft.write)
        if wait:
            self.finish()

    def publish(self, *, tidy: bool = True) -> None:
        """Put the open checkpoint, if any, into its place; ``tidy``: begin to delete old ones."""
        if self._draft is None or self._report is None:
            return
        self._draft.publish(self._report.result())
        if tidy and self._engine.grid.rank == 0:
            self._deletion = self._writer.submit(self.tidy)
        self._draft = self._report = None

    def finish(self) -> None:
        """``publish``, and wait until old ones are gone."""
        self.publish()
        if self._deletion is not None:
            for fault in self._deletion.result():
                self._say(fault)
            self._deletion = None

    def tidy(self) -> list[str]:
        """Delete old ones, on one rank; what cannot be deleted, and why."""
        train = self._job.stage.train
        return drop_old(self._job.run_folder, train.keep_last, train.keep_every)


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
