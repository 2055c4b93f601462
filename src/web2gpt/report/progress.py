"""How far a run is, from files that the stages write anyway: nothing is asked of them.

A job is done when its work folder says what it published, under way while it holds its lease,
stopped otherwise. Rates are those of the last progress line in a job's log; a job writes one every
ten seconds. The training's own are those of its metrics.
"""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from web2gpt.config.length import Length
from web2gpt.config.load import parse_settings
from web2gpt.config.root import Config
from web2gpt.config.train_stage import TrainStage
from web2gpt.errors import ConfigError
from web2gpt.io.atomic import read_json
from web2gpt.io.lease import TIMEOUT
from web2gpt.io.statistics import Statistics
from web2gpt.report.benchmarks import RULES
from web2gpt.report.files import UNREADABLE, Missing, good_lines
from web2gpt.report.settings import parse_config
from web2gpt.report.training import Training, metrics_of, read_training

LINE = re.compile(
    r"[^:]+: (?P<done>[\d,]+)(?: of (?P<total>[\d,]+))? (?P<unit>[^,]*), (?P<rate>[\d,.]+) a second"
)
TAIL = 4096  # bytes of a log that are looked at
RECENT = 50  # steps that the training's rate is taken from
SHARDED = ("fetch", "extract", "dedup_signatures", "dedup_remove", "clean", "decontaminate_count",
           "decontaminate")  # fmt: skip
LOGS = {
    "dedup_signatures": "dedup/signatures", "dedup_buckets": "dedup/buckets",
    "dedup_remove": "dedup",
    "dedup_pairs": "dedup/pairs.log", "dedup_clusters": "dedup/clusters.log",
    "urls": "urls/urls.log", "merge": "merge/merge.log", "tokenize": "tokenize/tokenize.log",
}  # fmt: skip
READS = {"fetch": "urls", "extract": "fetch", "dedup_remove": "extract", "clean": "dedup",
         "decontaminate": "clean", "merge": "clean", "tokenize": "merge"}  # fmt: skip
"""The stage whose records a stage reads, in the usual order."""


@dataclass(frozen=True)
class JobGroup:
    """The jobs of one rule. ``records`` and ``expected`` are counted in ``unit``; ``rate`` is that
    of the jobs under way together; ``seconds_left`` None: not known."""

    name: str
    jobs: int
    done: int
    running: int
    records: int = 0
    expected: int | None = None
    unit: str = ""
    rate: float = 0.0
    seconds_left: float | None = None

    @property
    def state(self) -> str:
        if self.done >= self.jobs:
            return "done"
        return "running" if self.running else "stopped"


@dataclass(frozen=True)
class RunState:
    """What is to be seen of a run at one moment. ``steps``: of the whole training, if known."""

    data: str
    run: str
    groups: tuple[JobGroup, ...]
    training: Training
    steps: int | None
    steps_left_seconds: float | None


def look(data: Path, run: Path) -> RunState:
    """Read the state of a corpus and a run; either may not be there yet."""
    shards = _shards(data)
    found = [*_groups(data, shards), *_groups(run, set())]
    order = {name: place for place, name in enumerate(RULES)}
    groups = sorted(found, key=lambda group: order.get(group.name, len(order)))
    training = read_training(run, Missing())
    steps = _steps(run)
    running = any(group.name == "train" and group.running for group in groups)
    left = _training_left(run, steps) if running else None
    return RunState(data.name, run.name, tuple(groups), training, steps, left)


def _groups(base: Path, shards: set[str]) -> Iterable[JobGroup]:
    work = base / "work"
    for folder in sorted(path for path in work.glob("*") if path.is_dir()):
        if folder.name not in RULES:
            continue
        jobs = [folder] if (folder / "job").exists() else sorted(folder.glob("*/"))
        if jobs:
            yield _group(base, folder.name, jobs, shards if folder.name in SHARDED else set())


def _group(base: Path, name: str, jobs: list[Path], shards: set[str]) -> JobGroup:
    running = [job for job in jobs if _holds_lease(job)]
    done = [job for job in jobs if job not in running and (job / "published.json").exists()]
    records, unit = _counted(base / "stats" / name.replace("dedup_remove", "dedup"))
    expected = _read_by(base, name)
    rate = 0.0
    for match in (_last_line(base, name, job) for job in running):
        if match:
            records += _number(match["done"])
            unit = unit or match["unit"]
            rate += float(match["rate"].replace(",", ""))
            expected = _number(match["total"]) if match["total"] else expected
    left = (expected - records) / rate if expected is not None and rate > 0 else None
    count = max(len(jobs), len(shards))
    return JobGroup(name, count, len(done), len(running), records, expected, unit, rate,
                    None if left is None else max(0.0, left))  # fmt: skip


def _shards(data: Path) -> set[str]:
    """The shards of documents, as far as any stage has begun on them."""
    names = {path.stem for path in (data / "urls").glob("*.tsv")}
    return names | {job.name for stage in SHARDED for job in (data / "work" / stage).glob("*/")}


def _holds_lease(job: Path) -> bool:
    try:
        return time.time() - (job / "lease.json").stat().st_mtime < TIMEOUT
    except OSError:
        return False


def _counted(folder: Path) -> tuple[int, str]:
    """Records that the finished jobs of a stage have read, and what they are."""
    total, unit = 0, ""
    for path in sorted(folder.glob("*.json")):
        try:
            part = Statistics.load(path)
        except UNREADABLE:
            continue
        total, unit = total + part.read, part.unit
    return total, unit


def _read_by(base: Path, name: str) -> int | None:
    """Records that a stage will read in all: what the one before it wrote, once that is done."""
    try:
        return Statistics.load(base / "stats" / f"{READS[name]}.json").out
    except UNREADABLE:
        return None


def _last_line(base: Path, name: str, job: Path) -> re.Match[str] | None:
    """The last progress line in a job's log."""
    place = LOGS.get(name, name if job.name != name else f"{name}.log")
    path = base / "logs" / (place if place.endswith(".log") else f"{place}/{job.name}.log")
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return None
    return next((match for line in reversed(lines) if (match := LINE.match(line))), None)


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _steps(run: Path) -> int | None:
    """Steps of the whole training: by the job that is under way, else by the configuration."""
    try:
        job = read_json(run / "work" / "train" / "run.json")
        settings: TrainStage | Config | None = parse_settings(TrainStage, job["stage"])
    except (*UNREADABLE, ConfigError):
        settings = parse_config(Missing().text(run / "config.yaml", "config.yaml"))
    return Length.of(settings.train, settings.model.n_positions).steps if settings else None


def _training_left(run: Path, steps: int | None) -> float | None:
    """Seconds that the rest of the training will take at the pace of its last steps."""
    try:
        rows = [row for row in good_lines(metrics_of(run)) if "loss" in row][-RECENT:]
        times = [float(row["time"]) for row in rows]
        last = int(rows[-1]["step"]) if rows else 0
    except UNREADABLE:
        return None
    if steps is None or len(times) < 2:
        return None
    return max(0, steps - last) * median(b - a for a, b in pairwise(times))
