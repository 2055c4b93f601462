"""Stage statistics: what went in, what was kept, what was lost and why.

Invariant: in = kept + sum(dropped) + sum(errors), always. ``dropped`` is a rule's decision,
``errors`` are unreadable records, ``out`` is what was written; it differs from ``kept`` only where
a stage splits or repeats. Times stand in ``time`` alone, so that everything else is reproducible.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from web2gpt.errors import InputError, LimitError
from web2gpt.io.atomic import read_json, write_json


@dataclass
class Statistics:
    """Counts of one stage, for one shard or for all; ``figures`` are further sums, by name."""

    stage: str
    unit: str
    read: int = 0
    kept: int = 0
    out: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    bytes_in: int = 0
    bytes_out: int = 0
    figures: Counter[str] = field(default_factory=Counter)
    time: dict[str, float] = field(default_factory=dict)

    def check(self) -> None:
        """Raise AssertionError if the counts do not add up: a fault of the stage's code."""
        accounted = self.kept + self.dropped.total() + self.errors.total()
        if self.read != accounted:
            raise AssertionError(f"{self.stage}: {self.read} read, {accounted} accounted for")

    def as_json(self) -> dict[str, Any]:
        """The form that stands in stats/, reasons sorted by name."""
        self.check()
        return {
            "stage": self.stage,
            "unit": self.unit,
            "in": self.read,
            "kept": self.kept,
            "dropped": dict(sorted(self.dropped.items())),
            "errors": dict(sorted(self.errors.items())),
            "out": self.out,
            "bytes": {"in": self.bytes_in, "out": self.bytes_out},
            "figures": dict(sorted(self.figures.items())),
            "time": {name: round(value, 3) for name, value in sorted(self.time.items())},
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(
            value["stage"],
            value["unit"],
            value["in"],
            value["kept"],
            value["out"],
            Counter(value["dropped"]),
            Counter(value["errors"]),
            value["bytes"]["in"],
            value["bytes"]["out"],
            Counter(value["figures"]),
            dict(value["time"]),
        )

    def write(self, path: Path) -> None:
        write_json(path, self.as_json())

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls.from_json(read_json(path))

    def summary(self) -> str:
        """The one line a stage ends with."""
        losses = ", ".join(
            f"{count:,} {reason}" for reason, count in (self.dropped + self.errors).most_common()
        )
        seconds = self.time.get("seconds", 0.0)
        return (
            f"{self.stage}: {self.read:,} {self.unit} in, {self.kept:,} kept, {self.out:,} out"
            + (f" ({losses})" if losses else "")
            + f", {seconds:.1f} s"
        )


def add_up(parts: Iterable[Statistics]) -> Statistics:
    """The statistics of a whole stage from those of its shards (at least one).

    Extract counts the pages of archives and the records of JSON lines; of both: pages and records.
    """
    first, *rest = parts
    total = Statistics.from_json(first.as_json())
    total.unit = " and ".join(sorted({first.unit, *(part.unit for part in rest)}))
    for part in rest:
        total.read += part.read
        total.kept += part.kept
        total.out += part.out
        total.bytes_in += part.bytes_in
        total.bytes_out += part.bytes_out
        for name in ("dropped", "errors", "figures"):
            getattr(total, name).update(getattr(part, name))
        for name, value in part.time.items():
            total.time[name] = total.time.get(name, 0.0) + value
    return total


def check_errors(total: Statistics, limit: float) -> None:
    """Raise ``LimitError`` when more than the share ``limit`` of a stage's input was unreadable."""
    errors = total.errors.total()
    if total.read and errors / total.read > limit:
        worst = ", ".join(f"{count} {reason}" for reason, count in total.errors.most_common(3))
        raise LimitError(
            f"{total.stage}: {errors:,} of {total.read:,} {total.unit} unreadable ({worst}), "
            f"more than limits.errors = {limit} allows. See rejected/{total.stage}/ for file, line "
            "and reason; mend the input or raise the limit."
        )


def check_something_left(total: Statistics) -> None:
    """Raise ``InputError`` when a stage has left nothing for those that follow.

    What came to a stage with nothing in it is the fault of the one before, save where there is none
    (urls), or where all others have been heard (merge).
    """
    if total.out or not (total.read or total.stage in ("urls", "merge")):
        return
    if not total.read:
        raise InputError(
            f"{total.stage}: no {total.unit} came in, so there is nothing to train on. See stats/ "
            "of the stages before it for where they were lost; mend the input, or their settings."
        )
    lost = total.dropped + total.errors
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in lost.most_common(3))
    raise InputError(
        f"{total.stage}: nothing is left of {total.read:,} {total.unit} ({reasons}), so there is "
        f"nothing to train on. See rejected/{total.stage}/ for each with its reason; mend the "
        f"input, or the settings of {total.stage}."
    )
