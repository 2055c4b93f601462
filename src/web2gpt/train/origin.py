"""What a run starts from, if not from initial weights: ``train.continue_from``.

- extend: the same run, longer. All that decides its weights must be as it was, but the number of
  steps, the schedule, and the index (made for more samples).
- branch: the checkpoint's whole state, under whatever settings are changed.
- weights: the weights alone, of a checkpoint or a Hugging Face folder; a new run from step 0.

What is named must be there: nothing falls back to initial weights.
"""

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from web2gpt.checkpoint.identity import RECORD
from web2gpt.config.training import Train
from web2gpt.errors import ConfigError
from web2gpt.io.atomic import read_json

ARCHITECTURE = (
    "n_layer", "n_embd", "n_head", "n_positions", "activation_function", "layer_norm_epsilon",
)  # fmt: skip
MAY_CHANGE = frozenset({"steps", "schedule", "index", "start"})
"""What an extension may decide otherwise than the run that it extends."""


def origin(train: Train) -> Mapping[str, Any] | None:
    """What decides the weights that the run starts from; None for initial weights.

    Raises ``ConfigError`` if what ``train.continue_from`` names is not there.
    """
    if train.continue_from is None:
        return None
    folder, mode = Path(train.continue_from), train.continue_mode
    if (folder / "index.json").is_file():
        index = read_json(folder / "index.json")
        return {"mode": mode, "identity": index["identity"], "step": index["step"]}
    if (folder / "config.json").is_file():
        if mode != "weights":
            raise ConfigError(
                f"train.continue_from: {folder} is a Hugging Face folder, which holds weights "
                "only; set train.continue_mode: weights"
            )
        return {"mode": mode, "files": _digest(folder)}
    raise ConfigError(
        f"train.continue_from: {folder} is no checkpoint and no Hugging Face folder; give one such "
        "as results/runs/demo/checkpoints/<identity>/step_00000400"
    )


def check_origin(train: Train, decides: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` if an extension changes what an extension cannot, or if another
    model is to take the weights: not every such one has tensors of other shapes."""
    if train.continue_from is None:
        return
    _check_model(Path(train.continue_from), decides.get("model", {}))
    if train.continue_mode != "extend":
        return
    record = Path(train.continue_from).resolve().parent / RECORD
    if not record.is_file():
        raise ConfigError(
            f"train.continue_from: {record} is not there, so it cannot be told whether the run is "
            "the same; set train.continue_mode: branch"
        )
    old = read_json(record)
    changed = [
        key
        for key in dict.fromkeys([*old, *decides])
        if key not in MAY_CHANGE and old.get(key) != decides.get(key)
    ]
    if changed:
        raise ConfigError(
            f"train.continue_mode: extend, but not the same run: {', '.join(changed)} changed; set "
            "them back, or train.continue_mode: branch"
        )


def _check_model(folder: Path, model: Mapping[str, Any]) -> None:
    """Compare with what a checkpoint's index.json or a Hugging Face config.json states."""
    checkpoint = folder / "index.json"
    if checkpoint.is_file():
        stated = read_json(checkpoint).get("model", {})
    else:
        from web2gpt.checkpoint.huggingface import Stated  # torch takes seconds to load

        stated = Stated.read(folder).model.model_dump()
    for name in ARCHITECTURE:
        if name in stated and name in model and stated[name] != model[name]:
            raise ConfigError(
                f"train.continue_from: {folder} has {name} = {stated[name]}, and model.{name} = "
                f"{model[name]}; set model.{name}: {stated[name]}"
            )


def _digest(folder: Path) -> str:
    digest = blake2b(digest_size=16)
    for path in sorted([folder / "config.json", *folder.glob("*.safetensors")]):
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()
