"""Write a checkpoint: (tensor, pipeline) ranks a file each, then one rank the index; then a rename.

A kill at any moment leaves either no folder of the final name or a complete one. Layout-free: see
``checkpoint.format``.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from web2gpt.checkpoint.format import (
    KINDS,
    REFERENCE,
    STATE,
    FileEntry,
    Index,
    Part,
    State,
    TensorEntry,
    rank_file,
    step_folder,
    step_of,
)
from web2gpt.errors import InputError
from web2gpt.io.atomic import TEMPORARY, sync_folder
from web2gpt.parallel.engine import Engine
from web2gpt.parallel.norm import is_tied_copy
from web2gpt.parallel.split import without_padding
from web2gpt.parallel.state import EngineState

REFERENCE_TOKENS = 16
LASTING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS)
"""What a file system refuses a write with that trying again does not mend."""

Report = tuple[dict[str, FileEntry], dict[str, TensorEntry]]
"""What a rank wrote: its files, and the slices in them."""


class Draft:
    """A checkpoint being written; the engine may go on once it is made.

    Building it copies this rank's state to the CPU, into ``copies`` where an earlier draft has left
    its own there: fresh memory costs ten times the copying. Building and publishing are collective;
    writing is not, and may be done by another thread. ``folder`` is the identity's own.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        identity: str,
        state: State,
        copies: dict[str, Tensor],
    ):
        self._engine, self._folder, self._identity, self._state = engine, folder, identity, state
        self._target = folder / step_folder(state.step)
        self._path = folder / f"{TEMPORARY}{self._target.name}"
        if self._leads:
            shutil.rmtree(self._path, ignore_errors=True)
            with _writing(self._path):
                self._path.mkdir(parents=True)
        dist.barrier()
        self._files, self._entries = _collect_files(engine, copies)

    def write(self) -> Report:
        """Write and sync this rank's files."""
        for file, tensors in self._files.items():
            with _writing(self._path / file):
                save_file(tensors, self._path / file)
                _sync(self._path / file)
        found = {file: FileEntry.of(self._path / file) for file in self._files}
        entries = self._entries if found else {}
        self._files = {}
        return found, entries

    def publish(self, report: Report) -> Path:
        """Add the index, when all have written, and rename the folder into place."""
        reports: list[Report | None] = [None] * dist.get_world_size()
        dist.all_gather_object(reports, report)
        if self._leads:
            with _writing(self._target):
                self._put_in_place(reports)
        dist.barrier()
        return self._target

    def _put_in_place(self, reports: list[Report | None]) -> None:
        self._state.write(self._path)
        index = _index(self._engine, self._path, self._identity, self._state, reports)
        index.write(self._path)
        sync_folder(self._path)
        shutil.rmtree(self._target, ignore_errors=True)
        os.replace(self._path, self._target)
        sync_folder(self._folder)

    @property
    def _leads(self) -> bool:
        return self._engine.grid.rank == 0


def drop_old(folder: Path, keep: int, keep_every: int | None = None) -> list[str]:
    """Delete drafts, and finished checkpoints but the last ``keep`` of steps that went well and
    those at multiples of ``keep_every``. What cannot be deleted is told, for the next time.

    One that was saved amid non-finite steps is never counted as kept in place of a good one.
    """
    finished = sorted((step, path) for path in folder.iterdir() if (step := step_of(path)))
    good = [step for step, path in finished if _went_well(path)]
    first = good[-keep:][0] if good else 0
    old = [
        path
        for step, path in finished
        if step < first and not (keep_every and step % keep_every == 0)
    ]
    drafts = sorted(folder.glob(f"{TEMPORARY}step_*"))
    return list(filter(None, map(_deletion_fault, [*drafts, *old])))


def _deletion_fault(path: Path) -> str:
    """Delete a checkpoint or draft; why that cannot be done, or nothing. A kill in the midst leaves
    a draft, no half of a checkpoint under its name."""
    draft = path.with_name(f"{TEMPORARY}{path.name.removeprefix(TEMPORARY)}")
    try:
        os.replace(path, draft)
        shutil.rmtree(draft)
    except OSError as error:
        left = draft if draft.exists() else path
        return (
            f"{left}: cannot be deleted ({error}). That is tried again after the next checkpoint "
            "and at the end of the run; if it stays, delete it."
        )
    return ""


def _went_well(path: Path) -> bool:
    try:
        return State.read(path).bad_in_a_row == 0
    except InputError:  # missing, not JSON, not ours: damaged
        return False


def _collect_files(
    engine: Engine, copies: dict[str, Tensor]
) -> tuple[dict[str, dict[str, Tensor]], dict[str, TensorEntry]]:
    """The tensors of each file that this rank writes, and where they belong. Collective."""
    grid = engine.grid
    name = rank_file(grid.tensor.rank, grid.pipeline_rank)
    contents, entries = _collect(engine, name, copies)
    reference = _reference_tokens(engine)
    logits = engine.logits(reference, REFERENCE_TOKENS)
    files: dict[str, dict[str, Tensor]] = {}
    if grid.data_rank == 0:
        files[name] = contents
        if grid.is_last_stage and grid.tensor.rank == 0 and logits is not None:
            files[REFERENCE] = {
                "tokens": reference[:1, :REFERENCE_TOKENS].cpu().contiguous(),
                "logits": logits.cpu().contiguous(),
            }
    return files, entries


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Raise ``InputError`` where the file system refuses to take ``path``, and will again."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        if isinstance(error, OSError) and error.errno not in LASTING:
            raise
        raise InputError(
            f"{path}: cannot be written ({error}). Earlier checkpoints stand as they were: mend "
            "that (where the disk is full, make room), and run again to carry on."
        ) from error


def _collect(
    engine: Engine, file: str, copies: dict[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, TensorEntry]]:
    """This rank's tensors as they go to its file, and where they belong. Collective."""
    state = EngineState(engine)
    contents, entries = {}, {}
    for name, local in engine.tensors.items():
        for kind in KINDS:
            value = state.read(kind, name)
            if engine.grid.data_rank == 0 and not is_tied_copy(local.parameter):
                value = without_padding(value, local.slice)
                contents[f"{kind}/{name}"] = _copied(value, f"{kind}/{name}", copies)
        if not is_tied_copy(local.parameter):
            entries[name] = TensorEntry(local.shape, (Part.of(file, local.slice),))
    return contents, entries


def _copied(value: Tensor, name: str, copies: dict[str, Tensor]) -> Tensor:
    """A copy on the CPU, contiguous; training goes on and changes ``value``."""
    if name not in copies:
        copies[name] = torch.empty(value.shape, dtype=value.dtype)
    return copies[name].copy_(value)


def _index(
    engine: Engine, draft: Path, identity: str, state: State, reports: list[Report | None]
) -> Index:
    files: dict[str, FileEntry] = {STATE: FileEntry.of(draft / STATE)}
    tensors: dict[str, TensorEntry] = {}
    for report in reports:
        if report is not None:
            files.update(report[0])
            for name, entry in report[1].items():
                parts = tensors[name].parts if name in tensors else ()
                tensors[name] = TensorEntry(entry.shape, parts + entry.parts)
    setup = engine.setup
    sizes: dict[str, Any] = setup.model.model_dump(mode="json") | {"vocab_size": setup.vocab_size}
    return Index(identity, state.step, sizes, tensors, files, setup.train.precision)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _reference_tokens(engine: Engine) -> Tensor:
    """The fixed micro-batch (B, T) whose first tokens every checkpoint carries, with the logits
    that the model gives them."""
    setup = engine.setup
    sequence = (torch.arange(setup.model.n_positions) * 7919 + 13) % setup.vocab_size
    return sequence.expand(setup.train.micro_batch_size, -1).contiguous().to(setup.device)
