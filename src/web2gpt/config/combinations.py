"""Which combinations of precision, accumulation, ZeRO, pipeline and offload are right, and why
others are not.

DeepSpeed refuses some of them late, with ranks already waiting for each other, and trains others
wrongly without a word. So every combination is looked up here when a configuration is read, before
any job starts. What is allowed was compared with a plain torch loop (tests/distributed).

Accumulation is the type in which gradients of micro-batches are added up. It is no setting: for
each precision exactly one is right everywhere, ``ACCUMULATION``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from web2gpt.config.training import Parallel, Train

Precision = Literal["fp32", "bf16", "fp16"]

PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "fp16")
ACCUMULATION: dict[Precision, Precision] = {"fp32": "fp32", "bf16": "fp32", "fp16": "fp16"}


@dataclass(frozen=True)
class Combination:
    """What decides which of DeepSpeed's optimizers runs, and whether it is right."""

    precision: Precision
    accumulation: Precision
    zero: int
    pipeline: bool
    offload: bool

    @classmethod
    def of(cls, train: Train, layout: Parallel) -> "Combination":
        return cls(
            train.precision,
            ACCUMULATION[train.precision],
            layout.zero,
            layout.pipeline > 1,
            layout.offload,
        )

    def __str__(self) -> str:
        own = self.accumulation == ACCUMULATION[self.precision]
        return (
            f"train.precision {self.precision}"
            f"{'' if own else f' accumulated in {self.accumulation}'}"
            f" with parallel.zero {self.zero}"
            f"{', parallel.pipeline above 1' if self.pipeline else ''}"
            f"{', parallel.offload' if self.offload else ''}"
        )


@dataclass(frozen=True)
class Refusal:
    """Combinations that are refused: those that match all fields given (None matches any)."""

    reason: str
    precision: tuple[Precision, ...] | None = None
    accumulation: tuple[Precision, ...] | None = None
    zero: tuple[int, ...] | None = None
    pipeline: bool | None = None
    offload: bool | None = None

    def covers(self, combination: Combination) -> bool:
        return (
            (self.precision is None or combination.precision in self.precision)
            and (self.accumulation is None or combination.accumulation in self.accumulation)
            and (self.zero is None or combination.zero in self.zero)
            and self.pipeline in (None, combination.pipeline)
            and self.offload in (None, combination.offload)
        )


REFUSALS = (
    Refusal(
        "gradients of the embedding would not be summed over the stages that share it",
        precision=("fp16",),
        accumulation=("fp32",),
    ),
    Refusal(
        "small gradients are lost when they are added up in 8 bits",
        precision=("bf16",),
        accumulation=("bf16",),
    ),
    Refusal(
        "gradients are added up in the type of the computation, or in fp32 under bf16",
        precision=("fp32",),
        accumulation=("bf16", "fp16"),
    ),
    Refusal("the two low precisions do not mix", precision=("bf16",), accumulation=("fp16",)),
    Refusal("the two low precisions do not mix", precision=("fp16",), accumulation=("bf16",)),
    Refusal(
        "DeepSpeed's pipeline needs whole gradients and parameters on each rank",
        zero=(2, 3),
        pipeline=True,
    ),
    Refusal(
        "without ZeRO there is no float32 copy of the weights to update, and the run takes "
        "another course",
        precision=("bf16", "fp16"),
        zero=(0,),
    ),
    Refusal(
        "without ZeRO there is no partition of the optimizer to keep on the CPU",
        zero=(0,),
        offload=True,
    ),
    Refusal(
        "gradients of the embedding would not be summed over the stages that share it",
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
    for precision, accumulation, zero, pipeline, offload in product(
        PRECISIONS, PRECISIONS, range(4), (False, True), (False, True)
    ):
        yield Combination(precision, accumulation, zero, pipeline, offload)


def nearest(combination: Combination) -> dict[str, object]:
    """The fewest changes that make ``combination`` right, by field.

    Precision and pipeline stay: they are what was wanted. Of equally few changes, those that give
    up least are taken: offload before ZeRO, and ZeRO 1, which every combination allows.
    """
    ways: list[dict[str, Any]] = [
        {"offload": False},
        {"zero": 1},
        {"zero": 1, "offload": False},
    ]
    accumulation = ACCUMULATION[combination.precision]
    if combination.accumulation != accumulation:
        ways = [{"accumulation": accumulation} | way for way in [{}, *ways]]
    return next(way for way in ways if refusal(replace(combination, **way)) is None)


def check_combination(train: Train, layout: Parallel) -> None:
    """Raise ``ValueError`` with the reason and the nearest combination that works."""
    combination = Combination.of(train, layout)
    found = refusal(combination)
    if found:
        changes = " with ".join(
            f"parallel.{name}: {str(value).lower()}" for name, value in nearest(combination).items()
        )
        raise ValueError(f"{combination}: {found.reason}; {changes} works")
