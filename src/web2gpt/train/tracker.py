"""Weights & Biases, for runs that name a project there; nothing else of ours reaches a network."""

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

from web2gpt.config.training import Train
from web2gpt.errors import ConfigError

Row = Mapping[str, Any]


class Tracker:
    """Weights & Biases, under the run's identity, so that a resumed run goes on there."""

    def __init__(self, project: str, identity: str, settings: Mapping[str, Any]):
        wandb = importlib.import_module("wandb")
        self._run = wandb.init(project=project, id=identity, resume="allow", config=dict(settings))

    def add(self, row: Row) -> None:
        numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
        self._run.log(numbers, step=row["step"])

    def close(self) -> None:
        self._run.finish()


def check_tracker(train: Train) -> None:
    """Raise ``ConfigError`` if a project is named, but the package is not installed."""
    if train.wandb_project is not None and importlib.util.find_spec("wandb") is None:
        raise ConfigError(
            "train.wandb_project: the package wandb is not installed; pip install wandb, or set it "
            "to null"
        )
