"""Carry on from a checkpoint, under whatever layout.

Weights are given to the engine as it is built; optimizer moments, counters and loss scale follow.
Every value is read back the same to the bit.
"""

from pathlib import Path

import torch.distributed as dist
from torch import Tensor

from web2gpt.checkpoint.format import KINDS, Index, State, step_of
from web2gpt.checkpoint.joined import JoinedCheckpoint
from web2gpt.errors import InputError
from web2gpt.parallel.engine import Engine
from web2gpt.parallel.split import cut
from web2gpt.parallel.state import WEIGHT, EngineState


def newest_checkpoint(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest undamaged checkpoint of an identity's folder, and what newer ones suffer from."""
    faults: list[str] = []
    if folder.is_dir():
        found = sorted(((step_of(p), p) for p in folder.iterdir() if step_of(p)), reverse=True)
        for _, path in found:
            try:
                Index.read(path).check_files(path)
            except InputError as error:
                faults.append(str(error))
            else:
                return path, faults
    return None, faults


def load_state(engine: Engine, checkpoint: JoinedCheckpoint) -> State:
    """Give ``engine``, built from the checkpoint's weights, all other state. Collective."""
    inner = EngineState(engine)
    for name, local in engine.tensors.items():
        for kind in KINDS:
            if kind != WEIGHT:
                inner.write(kind, name, cut(checkpoint.whole(kind, name), local.slice))
    state = State.read(checkpoint.folder)
    inner.optimizer_steps = state.optimizer_steps
    inner.loss_scaler = state.loss_scaler
    dist.barrier()
    return state


class WholeWeights:
    """A ``WholeTensor`` that reads a checkpoint, and checks shapes on the way."""

    def __init__(self, checkpoint: JoinedCheckpoint):
        self._checkpoint = checkpoint

    def __call__(self, name: str, shape: tuple[int, ...]) -> Tensor:
        whole = self._checkpoint.whole(WEIGHT, name)
        if tuple(whole.shape) != shape:
            raise InputError(
                f"{self._checkpoint.folder}: {name} is {tuple(whole.shape)} there, {shape} here; "
                "the model's sizes differ."
            )
        return whole
