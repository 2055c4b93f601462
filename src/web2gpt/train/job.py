"""What the launcher tells the processes that it starts: one JSON file in the work folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from web2gpt.config.load import parse_settings
from web2gpt.config.train_stage import TrainStage
from web2gpt.io.atomic import read_json, write_json
from web2gpt.train.device import Device

FILE = "run.json"
DONE = "done.json"
PULSE = "pulse"
METRICS = "metrics.jsonl"
CURVES = "tensorboard"


@dataclass(frozen=True)
class Job:
    """One training run. ``run_folder`` is the identity's own folder of checkpoints; ``documents``
    are the files documents.parquet by dataset, where known."""

    stage: TrainStage
    manifest: Path
    vocab_size: int
    identity: str
    run_folder: Path
    work: Path
    device: Device
    documents: Mapping[str, str] = field(default_factory=dict)

    def write(self) -> Path:
        """Write it to the work folder; gives the path for ``read``."""
        path = self.work / FILE
        values: dict[str, Any] = {
            "stage": self.stage.model_dump_json(),
            "manifest": str(self.manifest),
            "vocab_size": self.vocab_size,
            "identity": self.identity,
            "run_folder": str(self.run_folder),
            "work": str(self.work),
            "device": self.device,
            "documents": dict(self.documents),
        }
        write_json(path, values)
        return path

    @classmethod
    def read(cls, path: Path) -> Self:
        values = read_json(path)
        values["stage"] = parse_settings(TrainStage, values["stage"])
        for name in ("manifest", "run_folder", "work"):
            values[name] = Path(values[name])
        return cls(**values)
