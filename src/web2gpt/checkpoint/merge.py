"""The stage merge_checkpoint: from a checkpoint's slices to a Hugging Face folder.

Invariant: the folder appears only after every slice of every file, replicas included, was found
again in what was written, and (``verify``) the merged model gave the trainer's own logits. Weights
pass through one tensor at a time; the vocabulary is the true one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from web2gpt.checkpoint import huggingface
from web2gpt.checkpoint.format import INDEX, REFERENCE, Part
from web2gpt.checkpoint.huggingface import HuggingFaceFolder, key_of, turned, turned_shape
from web2gpt.checkpoint.identity import RECORD
from web2gpt.checkpoint.joined import JoinedCheckpoint
from web2gpt.checkpoint.streaming import SafetensorsWriter, tensor_bytes
from web2gpt.config.outputs import MergeCheckpoint
from web2gpt.config.versions import VERSIONS
from web2gpt.errors import InputError
from web2gpt.io.atomic import read_json, write_bytes, write_json
from web2gpt.io.progress import ProgressLine
from web2gpt.io.work import WorkFolder, file_states
from web2gpt.model.gpt2 import GPT2
from web2gpt.tokens.vocabulary import Vocabulary

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
        parts = split_files(written_shapes(checkpoint), settings)
        names = [*parts, "config.json", "generation_config.json"]
        names += ["tokenizer.json", "tokenizer_config.json"]
        names += [huggingface.WEIGHTS_INDEX] if len(parts) > 1 else []
        targets = {draft / name: files.output / name for name in names}
        if not work.is_published(targets.values()):
            draft.mkdir(exist_ok=True)
            write_settings(checkpoint, files.tokenizer, draft, settings)
            write_weights(checkpoint, draft, parts, settings)
            verify_slices(checkpoint, draft, settings)
            if wants_logits(checkpoint, settings):
                verify_logits(checkpoint, draft, settings)
            _remove_others(files.output, names)
            work.publish(targets)
        print(_summary(checkpoint, settings, files.output), flush=True)


def checkpoint_of(done: Path) -> Path:
    """The checkpoint folder that train/done.json names."""
    try:
        return Path(read_json(done)["checkpoint"])
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{done}: names no checkpoint ({error}); run train first.") from error


def written_shapes(checkpoint: JoinedCheckpoint) -> dict[str, tuple[int, ...]]:
    """Our names, and the shapes that the tensors have in Hugging Face's files."""
    return {name: turned_shape(name, shape) for name, shape in checkpoint.shapes.items()}


def split_files(
    shapes: Mapping[str, tuple[int, ...]], settings: MergeCheckpoint
) -> dict[str, list[str]]:
    """Which tensors stand in which file: one file, or several of at most ``max_file_bytes``."""
    groups: list[list[str]] = [[]]
    size = 0
    for name, shape in shapes.items():
        bytes_ = tensor_bytes(shape, getattr(torch, settings.dtype))
        if groups[-1] and size + bytes_ > settings.max_file_bytes:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += bytes_
    if len(groups) == 1:
        return {huggingface.WEIGHTS: groups[0]}
    count = len(groups)
    return {f"model-{n:05d}-of-{count:05d}.safetensors": g for n, g in enumerate(groups, start=1)}


def write_settings(
    checkpoint: JoinedCheckpoint, tokenizer: Path, draft: Path, settings: MergeCheckpoint
) -> None:
    """config.json, generation_config.json, tokenizer.json and tokenizer_config.json."""
    known = Vocabulary.load(tokenizer)
    if known.size != checkpoint.vocab_size:
        raise InputError(
            f"{tokenizer}: {known.size:,} ids, but {checkpoint.folder} was trained with "
            f"{checkpoint.vocab_size:,}; give the tokenizer that its tokens were made with."
        )
    model = checkpoint.model
    stated = huggingface.model_config(model, known.size, known.eod_id, settings.dtype)
    write_json(draft / "config.json", stated)
    write_json(draft / "generation_config.json", huggingface.generation_config(known.eod_id))
    write_bytes(draft / "tokenizer.json", tokenizer.read_bytes())
    write_json(draft / "tokenizer_config.json", huggingface.tokenizer_config(model, known.eod))


def write_weights(
    checkpoint: JoinedCheckpoint,
    draft: Path,
    parts: Mapping[str, list[str]],
    settings: MergeCheckpoint,
) -> None:
    """The weights, one tensor at a time, and the index of their files if there are several."""
    dtype = getattr(torch, settings.dtype)
    shapes = written_shapes(checkpoint)
    with ProgressLine("merge_checkpoint", unit="tensors", total=len(shapes)) as progress:
        for file, names in parts.items():
            header = {key_of(name): shapes[name] for name in names}
            with SafetensorsWriter(draft / file, header, dtype) as writer:
                for name in names:
                    weight = converted(name, checkpoint.whole("weight", name), dtype)
                    writer.write(key_of(name), turned(name, weight))
                    progress.advance(note=name)
    if len(parts) > 1:
        total = sum(tensor_bytes(shape, dtype) for shape in shapes.values())
        where = {key_of(name): file for file, names in parts.items() for name in names}
        index = {"metadata": {"total_size": total}, "weight_map": where}
        write_json(draft / huggingface.WEIGHTS_INDEX, index)


def converted(name: str, weight: Tensor, dtype: torch.dtype) -> Tensor:
    """The weight in its final type. Raises ``InputError`` if a value is or becomes infinite."""
    result = weight.to(dtype)
    if not torch.isfinite(result).all():
        largest = weight.abs().max().item()
        raise InputError(
            f"{name}: holds NaN or values beyond {dtype} (largest: {largest:.3g}); "
            "take an earlier checkpoint, or merge_checkpoint.dtype = float32."
        )
    return result


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
    """Whether ``verify`` calls for the comparison of logits."""
    size = sum(tensor_bytes(shape, torch.float32) for shape in checkpoint.shapes.values())
    return settings.verify == "logits" or (settings.verify == "auto" and size < LOGITS_LIMIT)


def verify_logits(checkpoint: JoinedCheckpoint, draft: Path, settings: MergeCheckpoint) -> None:
    """Compare the merged model's logits with those that the trainer stored.

    The folder's weights are used if they are float32. Rounded ones give other logits; since they
    were compared slice by slice, the joined float32 weights stand for them.
    """
    reference = load_file(checkpoint.folder / REFERENCE)
    if settings.dtype == "float32":
        model, _ = huggingface.load_model(draft)
    else:
        model = _joined_model(checkpoint)
    with torch.inference_mode():
        logits = model(reference["tokens"])
    wanted = reference["logits"]
    apart = (logits - wanted).abs().max().item() if logits.shape == wanted.shape else float("inf")
    bound = _tolerance(checkpoint, wanted)
    if not apart <= bound:
        raise InputError(
            f"{checkpoint.folder}: the merged model's logits {tuple(logits.shape)} differ from "
            f"the trainer's {tuple(wanted.shape)} by up to {apart:.3g}, more than "
            f"{bound:.3g}; nothing was written. Take another checkpoint."
        )


def _tolerance(checkpoint: JoinedCheckpoint, wanted: Tensor) -> float:
    """Largest difference of a logit. In float32 it is 1e-4, more only if logits are beyond 10."""
    record = checkpoint.folder.parent / RECORD
    precision = read_json(record)["precision"] if record.exists() else "fp32"
    size = wanted.square().mean().sqrt().item()
    return ROUNDING[precision] * (max(10.0, size) if precision == "fp32" else size)


def _joined_model(checkpoint: JoinedCheckpoint) -> GPT2:
    model = GPT2(checkpoint.model, checkpoint.vocab_size)
    with torch.no_grad():
        for name, parameter in model.tensors().items():
            parameter.copy_(checkpoint.whole("weight", name))
    return model.eval()


def _pairs(part: Part, local: Tensor, whole: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """What a slice holds beside what stands in its place of the whole tensor."""
    if part.dim is None:
        yield local, whole
    for span in part.ranges:
        yield (
            local.narrow(part.dim or 0, span.local_start, span.length),
            whole.narrow(part.dim or 0, span.global_start, span.length),
        )


def _remove_others(output: Path, names: list[str]) -> None:
    """Weights that an earlier merge left under other names would be taken for this model's."""
    for path in sorted(output.glob("model*.safetensors*")):
        if path.name not in names:
            path.unlink()


def _summary(checkpoint: JoinedCheckpoint, settings: MergeCheckpoint, output: Path) -> str:
    parameters = sum(torch.Size(shape).numel() for shape in checkpoint.shapes.values())
    checked = "slices and logits" if wants_logits(checkpoint, settings) else "slices"
    return (
        f"merge_checkpoint: step {checkpoint.index.step:,}, {len(checkpoint.shapes)} tensors, "
        f"{parameters:,} parameters as {settings.dtype}, {checked} verified, in {output}"
    )
