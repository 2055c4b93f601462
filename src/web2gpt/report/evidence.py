"""What a run left behind, gathered for the page.

A file that is missing or cannot be read is named in ``missing`` and leaves its section empty: a
report can be made at any time, of whatever is there. Texts are taken as they are; escaping is the
page's part.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import yaml
from pydantic import ValidationError

from web2gpt.config.root import Config
from web2gpt.errors import InputError
from web2gpt.io.atomic import read_json
from web2gpt.io.shards import BadLine, read_jsonl
from web2gpt.io.statistics import Statistics
from web2gpt.report.benchmarks import RuleCost, rule_costs

CHAIN = ("urls", "fetch", "extract", "dedup", "clean", "decontaminate", "merge", "tokenize")
MAX_SAMPLES = 50
UNREADABLE = (InputError, OSError, ValueError, KeyError, TypeError, yaml.YAMLError)


@dataclass(frozen=True)
class Curve:
    """One measured quantity over the optimizer steps."""

    steps: tuple[int, ...]
    values: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True)
class Change:
    """A setting that differs from its default."""

    key: str
    value: Any
    default: Any


@dataclass(frozen=True)
class Evidence:
    """Everything the page shows."""

    data: str
    run: str
    stages: tuple[Statistics, ...] = ()
    train: Curve = Curve((), ())
    valid: Curve = Curve((), ())
    learning_rate: Curve = Curve((), ())
    gradient_norm: Curve = Curve((), ())
    throughput: Curve = Curve((), ())
    samples: tuple[dict[str, Any], ...] = ()
    evaluation: tuple[tuple[str, Any], ...] = ()
    config: str = ""
    changes: tuple[Change, ...] = ()
    manifest: tuple[tuple[str, Any], ...] = ()
    costs: tuple[RuleCost, ...] = ()
    missing: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all was found."""
        found = (self.stages, self.train, self.valid, self.samples, self.evaluation, self.config)
        return not any(found)


def gather(data: Path, run: Path) -> Evidence:
    """Read what the folders of a corpus and of a run hold."""
    missing: list[str] = []
    metrics = _metrics(run / "train" / "metrics.jsonl", missing)
    config = _text(run / "config.yaml", missing)
    return Evidence(
        data=data.name,
        run=run.name,
        stages=_stages(data / "stats", missing),
        train=_curve(metrics, "loss"),
        valid=_curve(metrics, "valid_loss"),
        learning_rate=_curve(metrics, "lr"),
        gradient_norm=_curve(metrics, "grad_norm"),
        throughput=_curve(metrics, "tokens_per_second"),
        samples=_samples(run / "samples" / "samples.jsonl", missing),
        evaluation=_pairs(run / "evaluation" / "evaluation.json", missing),
        config=config,
        changes=_changes(config),
        manifest=_pairs(run / "manifest.json", missing),
        costs=rule_costs((data / "benchmarks", run / "benchmarks")),
        missing=missing,
    )


def _stages(folder: Path, missing: list[str]) -> tuple[Statistics, ...]:
    """The statistics of each stage, in the order of the chain."""
    found = {path.stem: path for path in sorted(folder.glob("*.json"))}
    order = [name for name in CHAIN if name in found]
    order += [name for name in found if name not in CHAIN]
    stages = []
    for name in order:
        try:
            stages.append(Statistics.load(found[name]))
        except UNREADABLE:
            missing.append(f"stats/{name}.json (unreadable)")
    if not found:
        missing.append("stats/")
    return tuple(stages)


def _metrics(path: Path, missing: list[str]) -> list[dict[str, Any]]:
    """The lines of the training log that belong to a step, in order; a step made again after a
    restart counts once."""
    steps: dict[tuple[int, bool], dict[str, Any]] = {}
    for line in _lines(path, "train/metrics.jsonl", missing):
        if type(line.get("step")) is int:
            steps[line["step"], "valid_loss" in line] = line
    return [steps[key] for key in sorted(steps)]


def _curve(metrics: list[dict[str, Any]], name: str) -> Curve:
    points = [
        (line["step"], float(line[name]))
        for line in metrics
        if type(line.get(name)) in (int, float)
    ]
    return Curve(tuple(step for step, _ in points), tuple(value for _, value in points))


def _samples(path: Path, missing: list[str]) -> tuple[dict[str, Any], ...]:
    samples = []
    for sample in _lines(path, "samples/samples.jsonl", missing):
        samples.append(sample)
        if len(samples) == MAX_SAMPLES:
            break
    return tuple(samples)


def _lines(path: Path, name: str, missing: list[str]) -> Iterator[dict[str, Any]]:
    try:
        for line in read_jsonl(path):
            if not isinstance(line, BadLine):
                yield line
    except InputError:
        missing.append(name)


def _pairs(path: Path, missing: list[str]) -> tuple[tuple[str, Any], ...]:
    """A JSON object as rows of dotted key and value."""
    name = f"{path.parent.name}/{path.name}" if path.parent.name == "evaluation" else path.name
    try:
        return tuple(_flatten(read_json(path)))
    except FileNotFoundError:
        missing.append(name)
    except (OSError, orjson.JSONDecodeError):
        missing.append(f"{name} (unreadable)")
    return ()


def _flatten(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flatten(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for number, inner in enumerate(value):
            yield from _flatten(inner, f"{key}.{number}" if key else str(number))
    else:
        yield key, value


def _text(path: Path, missing: list[str]) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        missing.append(path.name)
        return ""


def _changes(text: str) -> tuple[Change, ...]:
    """The settings that differ from the schema's defaults; nothing if the text is no longer a
    valid configuration."""
    try:
        config = Config.model_validate_json(orjson.dumps(yaml.safe_load(text)))
    except (ValidationError, TypeError, yaml.YAMLError):
        return ()
    given = dict(_flatten(config.model_dump(mode="json")))
    default = dict(_flatten(Config.model_construct(input=config.input).model_dump(mode="json")))
    return tuple(
        Change(key, value, default.get(key))
        for key, value in given.items()
        if value != default.get(key)
    )
