"""Which combinations of precision, ZeRO, pipeline and offload are right, and why others are not.

DeepSpeed refuses some of them late, with ranks already waiting for each other, and trains others
wrongly without a word. So every combination is looked up here before a process group exists. What
is allowed was compared with a plain torch loop (tests/distributed).

Gradients are accumulated in float32 under fp32 and bf16, in float16 (scaled) under fp16.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal

from web2gpt.config.training import Parallel, Train
from web2gpt.errors import ConfigError

Precision = Literal["fp32", "bf16", "fp16"]


@dataclass(frozen=True)
class Combination:
    """What decides which of DeepSpeed's optimizers runs, and whether it is right."""

    precision: Precision
    zero: int
    pipeline: bool
    offload: bool

    def __str__(self) -> str:
        return (
            f"train.precision {self.precision} with parallel.zero {self.zero}"
            f"{', parallel.pipeline above 1' if self.pipeline else ''}"
            f"{', parallel.offload' if self.offload else ''}"
        )


@dataclass(frozen=True)
class Refusal:
    """Combinations that are refused: those that match all fields given (None matches any)."""

    reason: str
    nearest: str
    precision: tuple[Precision, ...] | None = None
    zero: tuple[int, ...] | None = None
    pipeline: bool | None = None
    offload: bool | None = None

    def covers(self, combination: Combination) -> bool:
        return (
            (self.precision is None or combination.precision in self.precision)
            and (self.zero is None or combination.zero in self.zero)
            and self.pipeline in (None, combination.pipeline)
            and self.offload in (None, combination.offload)
        )


REFUSALS = (
    Refusal(
        "DeepSpeed's pipeline needs whole gradients and parameters on each rank",
        "parallel.zero: 1",
        zero=(2, 3),
        pipeline=True,
    ),
    Refusal(
        "without ZeRO there is no float32 copy of the weights to update, and the run takes "
        "another course",
        "parallel.zero: 1",
        precision=("bf16", "fp16"),
        zero=(0,),
    ),
    Refusal(
        "without ZeRO there is no partition of the optimizer to keep on the CPU",
        "parallel.zero: 1",
        zero=(0,),
        offload=True,
    ),
    Refusal(
        "gradients of the embedding would not be summed over the stages that share it",
        "parallel.offload: false",
        precision=("bf16", "fp16"),
        pipeline=True,
        offload=True,
    ),
)


def refusal(combination: Combination) -> Refusal | None:
    """The first reason why ``combination`` is refused; None if it is right."""
    return next((rule for rule in REFUSALS if rule.covers(combination)), None)


def all_combinations() -> Iterator[Combination]:
    """Every row of the table."""
    precisions: tuple[Precision, ...] = ("fp32", "bf16", "fp16")
    for precision, zero, pipeline, offload in product(
        precisions, range(4), (False, True), (False, True)
    ):
        yield Combination(precision, zero, pipeline, offload)


def check_combination(train: Train, layout: Parallel) -> None:
    """Raise ``ConfigError`` with the reason and the nearest combination that works."""
    combination = Combination(train.precision, layout.zero, layout.pipeline > 1, layout.offload)
    found = refusal(combination)
    if found:
        raise ConfigError(f"{combination}: {found.reason}; {found.nearest} works")
