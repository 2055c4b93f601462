"""A run's identity: one hash of all that decides its weights.

The layout (tensor, pipeline, data, ZeRO, micro-batch, recomputation, device, padding of the
vocabulary), logging, and the intervals of evaluation and checkpoints are no part of it: a run
carries on under another of these. Anything else that changes makes another run, which starts beside
the old one. Paths are no part of it either: contents are.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

from web2gpt.config.length import Length
from web2gpt.config.train_stage import TrainStage
from web2gpt.config.training import LOSS_SCALING, NOT_DECIDING, Train
from web2gpt.config.versions import VERSIONS
from web2gpt.io.atomic import read_json, write_json

RECORD = "identity.json"
"""In an identity's folder: what it is the hash of."""


def deciding(
    stage: TrainStage, manifest: Mapping[str, Any], start: Mapping[str, Any] | None
) -> dict[str, Any]:
    """All that decides the weights.

    ``manifest`` is that of the index; its own identity covers tokens, tokenizer and their order.
    ``start`` is the checkpoint that the run extends (identity and step), if any.
    """
    return {
        "version": VERSIONS["train"],
        "index": manifest["identity"],
        "tokenizer": manifest["tokenizer"]["blake2b"],
        "vocab_size": manifest["tokenizer"]["vocab_size"],
        "model": stage.model.model_dump(mode="json", exclude={"vocab_multiple"}),
        "seed": stage.run.seed,
        "optimizer": stage.optimizer.model_dump(mode="json"),
        "schedule": stage.schedule.model_dump(mode="json"),
        "train": _deciding_settings(stage.train),
        "steps": Length.of(stage.train, stage.model.n_positions).steps,
        "start": dict(start) if start else None,
    }


def _deciding_settings(train: Train) -> dict[str, Any]:
    """All but those known not to decide, and those that stand elsewhere: the length, the start."""
    elsewhere = {"steps", "samples", "tokens", "continue_from", "continue_mode"}
    if train.precision != "fp16":
        elsewhere |= LOSS_SCALING
    return train.model_dump(mode="json", exclude={*NOT_DECIDING, *elsewhere})


def identity_of(decides: Mapping[str, Any]) -> str:
    """The hash, 20 hexadecimal digits: the name of the run's folder of checkpoints."""
    text = orjson.dumps(decides, option=orjson.OPT_SORT_KEYS)
    return blake2b(text, digest_size=10).hexdigest()


def record_identity(checkpoints: Path, decides: Mapping[str, Any]) -> str | None:
    """Open the folder of a run. If others stand there and this one is new, say what changed.

    Gives None when the run is known or the first.
    """
    folder = checkpoints / identity_of(decides)
    if (folder / RECORD).exists():
        return None
    known = sorted(checkpoints.glob(f"*/{RECORD}"), key=lambda path: path.stat().st_mtime_ns)
    write_json(folder / RECORD, decides)
    if not known:
        return None
    latest = known[-1]
    changes = ", ".join(_changes(read_json(latest), decides))
    return f"a new run {folder.name}, beside {latest.parent.name}; changed: {changes}"


def _changes(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key in dict.fromkeys([*old, *new]):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _changes(before, after, f"{prefix}{key}.")
        elif isinstance(after, int | float) and isinstance(before, int | float):
            yield f"{prefix}{key} {before} -> {after}"
        else:
            yield f"{prefix}{key}"
