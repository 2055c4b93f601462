"""What a checkpoint holds, for the reader, and whether it is sound."""

import json
from pathlib import Path

import torch

from web2gpt.checkpoint.format import KINDS, REFERENCE, Index, State
from web2gpt.checkpoint.joined import JoinedCheckpoint, model_of
from web2gpt.errors import InputError
from web2gpt.io.progress import ProgressLine


def describe(folder: Path) -> str:
    """Lines that say from which run it is, how far it got, and what stands in its files."""
    index, state = Index.read(folder), State.read(folder)
    model, vocab_size = model_of(index, folder)
    parameters = sum(torch.Size(entry.shape).numel() for entry in index.tensors.values())
    layout = ", ".join(f"{key} {value}" for key, value in state.layout.items())
    lines = [
        f"checkpoint   {folder}",
        f"identity     {index.identity}",
        f"step         {index.step:,} ({state.optimizer_steps:,} applied)",
        f"seen         {state.tokens:,} tokens, {state.samples:,} samples",
        f"precision    {index.precision} (weights and moments are kept in float32)",
        f"saved under  {layout or 'a layout it does not state'}",
        f"model        n_layer {model.n_layer}, n_embd {model.n_embd}, n_head {model.n_head}, "
        f"n_positions {model.n_positions}, vocabulary {vocab_size:,}",
        f"parameters   {parameters:,} in {len(index.tensors)} tensors, each with two moments",
    ]
    for name, entry in index.files.items():
        lines.append(f"file         {entry.bytes:>15,} bytes  {name}")
    return "\n".join(lines)


def facts_json(folder: Path) -> str:
    """The same facts as a JSON object."""
    index, state = Index.read(folder), State.read(folder)
    model, vocab_size = model_of(index, folder)
    facts = {
        "folder": str(folder),
        "identity": index.identity,
        "step": index.step,
        "applied_steps": state.optimizer_steps,
        "tokens": state.tokens,
        "samples": state.samples,
        "precision": index.precision,
        "layout": dict(state.layout),
        "model": model.model_dump(mode="json") | {"vocab_size": vocab_size},
        "parameters": sum(torch.Size(entry.shape).numel() for entry in index.tensors.values()),
        "tensors": len(index.tensors),
        "files": {name: entry.bytes for name, entry in index.files.items()},
    }
    return json.dumps(facts, indent=2)


def verify(folder: Path) -> str:
    """Check everything that can be checked without the trainer; returns the line to print.

    Raises ``InputError`` at the first fault: a checksum, a missing or unknown key, a gap, replicas
    that differ, a value that is not finite, a negative second moment.
    """
    with JoinedCheckpoint(folder) as checkpoint:
        checkpoint.index.check_files(folder)
        names = list(checkpoint.shapes)
        with ProgressLine("verify", unit="tensors", total=len(names)) as progress:
            for name in names:
                for kind in KINDS:
                    _check(folder, kind, name, checkpoint.whole(kind, name))
                progress.advance()
        known = "" if REFERENCE in checkpoint.index.files else ", without reference logits"
    return f"verify: {folder} is sound: {len(names)} tensors, checksums and replicas agree{known}"


def _check(folder: Path, kind: str, name: str, tensor: torch.Tensor) -> None:
    if not torch.isfinite(tensor).all():
        bad = int((~torch.isfinite(tensor)).sum())
        raise InputError(
            f"{folder}: {kind}/{name} holds {bad:,} values that are not finite; take an older one."
        )
    if kind == "exp_avg_sq" and bool((tensor < 0).any()):
        raise InputError(
            f"{folder}: {kind}/{name} holds negative values, no moments; take another one."
        )
