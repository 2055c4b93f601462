"""Write a checkpoint: (tensor, pipeline) ranks a file each, then one rank the index; then a rename.

A kill at any moment leaves either no folder of the final name or a complete one. Layout-free: see
``checkpoint.format``.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
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
from web2gpt.io.atomic import TEMPORARY, sync_folder
from web2gpt.parallel.engine import Engine
from web2gpt.parallel.norm import is_tied_copy
from web2gpt.parallel.split import without_padding
from web2gpt.parallel.state import EngineState

REFERENCE_TOKENS = 16

Report = tuple[dict[str, FileEntry], dict[str, TensorEntry]]
"""What a rank wrote: its files, and the slices in them."""


def save_checkpoint(
    engine: Engine, folder: Path, identity: str, state: State, reference: Tensor, *, keep: int
) -> Path:
    """Write ``folder/step_…`` and drop all but the last ``keep``. Collective.

    ``folder`` is the identity's own. ``reference`` (B, T): a micro-batch whose first tokens are
    kept with the logits that the model gives them.
    """
    target = folder / step_folder(state.step)
    draft = folder / f"{TEMPORARY}{target.name}"
    leads = engine.grid.rank == 0
    if leads:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
    dist.barrier()
    reports: list[Report | None] = [None] * dist.get_world_size()
    dist.all_gather_object(reports, _write_own(engine, draft, reference))
    if leads:
        state.write(draft)
        _index(engine, draft, identity, state, reports).write(draft)
        sync_folder(draft)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(draft, target)
        sync_folder(folder)
        drop_old(folder, keep)
    dist.barrier()
    return target


def drop_old(folder: Path, keep: int) -> None:
    """Delete drafts, and all finished checkpoints but the last ``keep``."""
    finished = sorted((step, path) for path in folder.iterdir() if (step := step_of(path)))
    drafts = [path for path in folder.iterdir() if path.name.startswith(TEMPORARY)]
    for path in [*(path for _, path in finished[:-keep]), *drafts]:
        shutil.rmtree(path)


def _write_own(engine: Engine, draft: Path, reference: Tensor) -> Report:
    grid = engine.grid
    name = rank_file(grid.tensor.rank, grid.pipeline_rank)
    contents, entries = _collect(engine, name)
    logits = engine.logits(reference)
    files: dict[str, dict[str, Tensor]] = {}
    if grid.data_rank == 0:
        files[name] = contents
        if grid.is_last_stage and grid.tensor.rank == 0 and logits is not None:
            files[REFERENCE] = {
                "tokens": reference[:1, :REFERENCE_TOKENS].cpu().contiguous(),
                "logits": logits[:1, :REFERENCE_TOKENS].cpu().contiguous(),
            }
    for file, tensors in files.items():
        save_file(tensors, draft / file)
        _sync(draft / file)
    return {file: FileEntry.of(draft / file) for file in files}, entries if files else {}


def _collect(engine: Engine, file: str) -> tuple[dict[str, Tensor], dict[str, TensorEntry]]:
    """This rank's tensors as they go to its file, and where they belong. Collective."""
    state = EngineState(engine)
    contents, entries = {}, {}
    for name, local in engine.tensors.items():
        for kind in KINDS:
            value = state.read(kind, name)
            if engine.grid.data_rank == 0 and not is_tied_copy(local.parameter):
                value = without_padding(value, local.slice)
                contents[f"{kind}/{name}"] = value.cpu().contiguous().clone()
        if not is_tied_copy(local.parameter):
            entries[name] = TensorEntry(local.shape, (Part.of(file, local.slice),))
    return contents, entries


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


def reference_tokens(model_positions: int, rows: int, vocab_size: int) -> Tensor:
    """The fixed tokens (rows, T) whose logits every checkpoint carries."""
    sequence = (torch.arange(model_positions) * 7919 + 13) % vocab_size
    return sequence.expand(rows, -1).contiguous()
