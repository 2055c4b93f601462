"""The stage merge_checkpoint: from a checkpoint's slices to a Hugging Face folder.

Invariant: the folder appears only after every slice of every file, replicas included, was found
again in what was written, and (``verify``) the merged model gave the trainer's own logits. Weights
pass through one tensor at a time; the vocabulary is the true one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from web2gpt.checkpoint import huggingface
from web2gpt.checkpoint.export import (
    file_names,
    remove_others,
    split_files,
    write_settings,
    write_weights,
    written_shapes,
)
from web2gpt.checkpoint.format import INDEX, REFERENCE, Part
from web2gpt.checkpoint.huggingface import HuggingFaceFolder
from web2gpt.checkpoint.joined import JoinedCheckpoint
from web2gpt.checkpoint.streaming import tensor_bytes
from web2gpt.config.outputs import MergeCheckpoint
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import InputError
from web2gpt.io.atomic import read_json
from web2gpt.io.made import made_by
from web2gpt.io.work import WorkFolder, file_states

ROUNDING = {"fp32": 1e-5, "bf16": 2.0**-3, "fp16": 2.0**-6}
"""How far a trainer's logits may be from float32, in units of their root mean square: what its
precision explains. A wrongly joined tensor is off by 1 or more."""
LOGITS_LIMIT = 1_000_000_000  # bytes of weights up to which `verify: auto` compares logits


@dataclass(frozen=True)
class MergeFiles:
    """Where the stage reads and writes; ``done`` names the checkpoint."""

    done: Path
    tokenizer: Path
    output: Path
    work: Path


def merge_checkpoint(files: MergeFiles, settings: MergeCheckpoint) -> None:
    """Make the folder ``files.output`` from the checkpoint that the trainer ended with.

    Raises ``InputError`` if the checkpoint or the tokenizer does not fit, or a check fails.
    """
    folder = checkpoint_of(files.done)
    job = {
        "stage": "merge_checkpoint",
        "version": VERSIONS["merge_checkpoint"],
        "settings": settings.model_dump(mode="json"),
        "inputs": file_states([folder / INDEX, files.tokenizer]),
    }
    with WorkFolder(files.work, job) as work, JoinedCheckpoint(folder) as checkpoint:
        checkpoint.index.check_files(folder)
        draft = work.path / "model"
        dtype = getattr(torch, settings.dtype)
        parts = split_files(written_shapes(checkpoint), dtype, settings.max_file_bytes)
        names = file_names(parts)
        targets = {draft / name: files.output / name for name in names}
        if not work.is_published(targets.values()):
            draft.mkdir(exist_ok=True)
            write_settings(checkpoint, files.tokenizer, draft, dtype)
            write_weights(checkpoint, draft, parts, dtype)
            verify_slices(checkpoint, draft, settings)
            if wants_logits(checkpoint, settings):
                verify_logits(checkpoint, draft, settings)
            remove_others(files.output, names)
            work.publish(targets)
        print(_summary(checkpoint, settings, files.output), flush=True)


def checkpoint_of(done: Path) -> Path:
    """The checkpoint folder that train/done.json names."""
    with made_by("train", done):
        return Path(read_json(done)["checkpoint"])


def verify_slices(checkpoint: JoinedCheckpoint, draft: Path, settings: MergeCheckpoint) -> None:
    """Read back what was written, and look for every slice of every file in its place."""
    dtype = getattr(torch, settings.dtype)
    with HuggingFaceFolder(draft) as folder:
        for name in checkpoint.shapes:
            written = folder.tensor(name)
            for part, local in checkpoint.slices("weight", name):
                if not all(torch.equal(a, b) for a, b in _pairs(part, local.to(dtype), written)):
                    raise InputError(
                        f"{draft}: {name} is not what {part.file} holds; the disk or the memory "
                        "is at fault. Run it again, on another machine if it happens twice."
                    )


def wants_logits(checkpoint: JoinedCheckpoint, settings: MergeCheckpoint) -> bool:
    """Whether ``verify`` calls for the comparison of logits. Raises ``InputError`` if it must be
    made and the checkpoint holds none."""
    size = sum(tensor_bytes(shape, torch.float32) for shape in checkpoint.shapes.values())
    is_there = REFERENCE in checkpoint.index.files
    if settings.verify == "logits" and not is_there:
        raise InputError(
            f"{checkpoint.folder}: holds no logits of the trainer's; merge it with --verify slices."
        )
    wanted = settings.verify == "logits" or (settings.verify == "auto" and size < LOGITS_LIMIT)
    return wanted and is_there


def verify_logits(checkpoint: JoinedCheckpoint, draft: Path, settings: MergeCheckpoint) -> None:
    """Compare the merged model's logits with those that the trainer stored.

    The folder's weights are used if they are float32. Rounded ones give other logits; since they
    were compared slice by slice, the joined float32 weights stand for them.
    """
    tokens, wanted = _reference(checkpoint)
    if settings.dtype == "float32":
        model, _ = huggingface.load_model(draft)
    else:
        model = checkpoint.as_model()
    with torch.inference_mode():
        logits = model(tokens)
    apart = (logits - wanted).abs().max().item() if logits.shape == wanted.shape else float("inf")
    bound = _tolerance(checkpoint, wanted)
    if not apart <= bound:
        raise InputError(
            f"{checkpoint.folder}: the merged model's logits {tuple(logits.shape)} differ from "
            f"the trainer's {tuple(wanted.shape)} by up to {apart:.3g}, more than "
            f"{bound:.3g}; nothing was written. Take another checkpoint."
        )


def _reference(checkpoint: JoinedCheckpoint) -> tuple[Tensor, Tensor]:
    """The tokens that the trainer kept, and its logits for them."""
    path = checkpoint.folder / REFERENCE
    try:
        with made_by("train", path):
            found = load_file(path)
            tokens, logits = found["tokens"], found["logits"]
    except SafetensorError as error:
        raise InputError(f"{path}: cannot be read ({error}); take another one.") from error
    fits = tokens.dim() == 2 and 0 < tokens.size(1) <= checkpoint.model.n_positions
    if tokens.dtype != torch.int64 or not fits or tokens.numel() > logits.numel():
        raise InputError(f"{path}: tokens {tuple(tokens.shape)} are not some of this model's.")
    if not 0 <= int(tokens.min()) <= int(tokens.max()) < checkpoint.vocab_size:
        raise InputError(f"{path}: tokens beyond the vocabulary of {checkpoint.vocab_size:,}.")
    return tokens, logits


def _tolerance(checkpoint: JoinedCheckpoint, wanted: Tensor) -> float:
    """Largest difference of a logit. In float32 it is 1e-4, more only if logits are beyond 10."""
    precision = checkpoint.index.precision
    size = wanted.square().mean().sqrt().item()
    return ROUNDING[precision] * (max(10.0, size) if precision == "fp32" else size)


def _pairs(part: Part, local: Tensor, whole: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """What a slice holds beside what stands in its place of the whole tensor."""
    if part.dim is None:
        yield local, whole
    for span in part.ranges:
        yield (
            local.narrow(part.dim or 0, span.local_start, span.length),
            whole.narrow(part.dim or 0, span.global_start, span.length),
        )


def _summary(checkpoint: JoinedCheckpoint, settings: MergeCheckpoint, output: Path) -> str:
    parameters = sum(torch.Size(shape).numel() for shape in checkpoint.shapes.values())
    checked = "slices and logits" if wants_logits(checkpoint, settings) else "slices"
    return (
        f"merge_checkpoint: step {checkpoint.index.step:,}, {len(checkpoint.shapes)} tensors, "
        f"{parameters:,} parameters as {settings.dtype}, {checked} verified, in {output}"
    )
