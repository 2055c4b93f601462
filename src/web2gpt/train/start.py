"""Where a run begins: at its newest whole checkpoint, at one it was told of, or at step 0."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path

import torch.distributed as dist
from torch import Tensor

from web2gpt.checkpoint.format import INDEX, Index, State, step_of
from web2gpt.checkpoint.huggingface import HuggingFaceFolder
from web2gpt.checkpoint.joined import JoinedCheckpoint
from web2gpt.checkpoint.load import WholeWeights, load_state, newest_checkpoint
from web2gpt.checkpoint.save import drop_old
from web2gpt.config.length import Length
from web2gpt.errors import InputError
from web2gpt.io.atomic import TEMPORARY
from web2gpt.model.initialization import initial_tensor
from web2gpt.parallel.engine import Engine
from web2gpt.parallel.parameters import WholeTensor
from web2gpt.train.job import Job

SET_ASIDE = "damaged-"
BEGINNING = State(step=0, optimizer_steps=0, samples=0, tokens=0)


@dataclass(frozen=True)
class Start:
    """``folder``: None for initial weights. ``whole``: the folder's state is taken, not only its
    weights."""

    folder: Path | None
    whole: bool

    def is_of(self, job: Job) -> bool:
        """Whether all steps so far are the run's own; weights alone bring none."""
        return not self.folder or not self.whole or self.folder.parent == job.run_folder

    def __str__(self) -> str:
        if self.folder is None:
            return "starts at step 0"
        return f"carries on from {self.folder}" if self.whole else f"takes weights of {self.folder}"


def find_start(job: Job, say: Callable[[str], None]) -> Start:
    """The newest whole checkpoint of this run, else what ``train.continue_from`` names.

    Rank 0 looks. Damaged checkpoints are set aside, so that they are never kept in the place of
    one that is whole. Collective.
    """
    choice: list[Start | None] = [None]
    if dist.get_rank() == 0:
        choice = [choose_start(job, say)]
    dist.broadcast_object_list(choice)
    start = choice[0]
    assert start is not None
    if start.folder and start.whole:
        _check_length(job, start.folder)
    return start


@contextmanager
def opened(start: Start, job: Job) -> Iterator[tuple[WholeTensor, Callable[[Engine], State]]]:
    """The weights to build an engine from, and what gives the engine all other state."""
    model, seed = job.stage.model, job.stage.run.seed
    if start.folder is None:
        yield partial(initial_tensor, model=model, seed=seed), lambda engine: BEGINNING
    elif (start.folder / INDEX).is_file():
        with JoinedCheckpoint(start.folder) as checkpoint:
            weights = WholeWeights(checkpoint)
            whole = start.whole
            yield weights, lambda engine: load_state(engine, checkpoint) if whole else BEGINNING
    else:
        with HuggingFaceFolder(start.folder) as folder:
            yield _given(folder), lambda engine: BEGINNING


def _given(folder: HuggingFaceFolder) -> WholeTensor:
    def whole(name: str, shape: tuple[int, ...]) -> Tensor:
        stored = folder.shapes.get(name)
        if stored != shape:
            raise InputError(
                f"{folder.path}: {name} is {stored} there, {shape} here; the sizes under model, or "
                "the tokenizer, differ: set them alike."
            )
        return folder.tensor(name).float()

    return whole


def choose_start(job: Job, say: Callable[[str], None]) -> Start:
    """What rank 0 finds. Raises ``InputError`` if a checkpoint that was named is damaged."""
    train = job.stage.train
    newest, faults = newest_checkpoint(job.run_folder)
    for fault in faults:
        say(f"{fault} {'An older one is taken.' if newest else ''}")
    if job.run_folder.is_dir():
        _set_aside(job.run_folder, newest)
        for half in job.run_folder.glob(f"{TEMPORARY}*"):
            if half.is_file():
                half.unlink()
        for fault in drop_old(job.run_folder, sys.maxsize, train.keep_every):
            say(fault)
    if newest or train.continue_from is None:
        return Start(newest, whole=True)
    named = Path(train.continue_from)
    if (named / INDEX).is_file():
        Index.read(named).check_files(named)
    return Start(named, whole=train.continue_mode != "weights")


def _set_aside(folder: Path, newest: Path | None) -> None:
    """Rename checkpoints after ``newest``, all of them damaged."""
    last = step_of(newest) if newest else 0
    for path in sorted(folder.iterdir()):
        step = step_of(path)
        if step is not None and step > (last or 0):
            os.replace(path, _free_name(path.with_name(f"{SET_ASIDE}{path.name}")))


def _free_name(path: Path) -> Path:
    """``path``, or with a number if one of this name has been set aside before."""
    names = chain([path], (path.with_name(f"{path.name}.{number}") for number in count(2)))
    return next(name for name in names if not name.exists())


def _check_length(job: Job, folder: Path) -> None:
    steps = Length.of(job.stage.train, job.stage.model.n_positions).steps
    if Index.read(folder).step > steps:
        raise InputError(
            f"{folder}: beyond the run's {steps:,} steps; make it longer (train.steps)"
        )
