"""The training as the page shows it: what the trainer wrote down of its steps and its starts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from web2gpt.report.files import UNREADABLE, Missing, good_lines

GIB = 1 << 30
STARTS = "starts.jsonl"


@dataclass(frozen=True)
class Curve:
    """One measured quantity over the optimizer steps."""

    steps: tuple[int, ...] = ()
    values: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True)
class Training:
    """``not_applied``: steps whose gradient was not finite; ``passed_over``: those of
    ``train.skip_steps``; ``restarts``: the step that each further start went on from;
    ``estimated``: GiB of a process, as estimated before."""

    loss: Curve = Curve()
    valid: tuple[tuple[str, Curve], ...] = ()
    learning_rate: Curve = Curve()
    gradient_norm: Curve = Curve()
    throughput: Curve = Curve()
    memory: Curve = Curve()
    not_applied: tuple[int, ...] = ()
    passed_over: tuple[int, ...] = ()
    restarts: tuple[int, ...] | None = None
    estimated: float | None = None

    def __bool__(self) -> bool:
        return bool(self.loss or self.valid)


def read_training(run: Path, missing: Missing) -> Training:
    """Read what the trainer left of a run."""
    path = metrics_of(run)
    rows = _rows(path, missing)
    starts = _starts(run)
    names = sorted({name for row in rows for name in row if name.startswith("valid_loss")})
    return Training(
        loss=_curve(rows, "loss"),
        valid=tuple((name, curve) for name in names if (curve := _curve(rows, name))),
        learning_rate=_curve(rows, "lr"),
        gradient_norm=_curve(rows, "grad_norm"),
        throughput=_curve(rows, "tokens_per_second"),
        memory=_curve(rows, "peak_memory_gib"),
        not_applied=tuple(row["step"] for row in rows if row.get("skipped")),
        passed_over=tuple(row["step"] for row in rows if row.get("passed_over")),
        restarts=tuple(row["step"] for row in starts[1:]) if starts else None,
        estimated=starts[-1]["estimated_bytes"] / GIB if starts else None,
    )


def metrics_of(run: Path) -> Path:
    """What is published at the end; before that, the newest that a trainer writes to."""
    published = run / "train" / "metrics.jsonl"
    writing = sorted((run / "checkpoints").glob("*/metrics.jsonl"), key=_changed)
    if writing and (not published.exists() or _changed(writing[-1]) > _changed(published) + 1):
        return writing[-1]
    return published


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _rows(path: Path, missing: Missing) -> list[dict[str, Any]]:
    """The rows of the log that belong to a step, in order; a step made again after a restart counts
    once."""
    steps: dict[tuple[int, bool], dict[str, Any]] = {}
    for line in missing.lines(path, "train/metrics.jsonl"):
        if type(line.get("step")) is int:
            steps[line["step"], "valid_loss" in line] = line
    return [steps[key] for key in sorted(steps)]


def _curve(rows: list[dict[str, Any]], name: str) -> Curve:
    points = [
        (row["step"], float(row[name])) for row in rows if type(row.get(name)) in (int, float)
    ]
    return Curve(tuple(step for step, _ in points), tuple(value for _, value in points))


def _starts(run: Path) -> list[dict[str, Any]]:
    """The starts of the run that was trained last; none if that was not noted."""
    files = sorted((run / "checkpoints").glob(f"*/{STARTS}"), key=_changed)
    try:
        rows = list(good_lines(files[-1])) if files else []
    except UNREADABLE:
        return []
    return [row for row in rows if {"step", "estimated_bytes"} <= row.keys()]
