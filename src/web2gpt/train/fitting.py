"""Layouts that fit the GPUs at hand, nearest to the one asked for first."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from web2gpt.config.derive import check_layout, world_size
from web2gpt.config.training import Model, Parallel, Train
from web2gpt.errors import ConfigError
from web2gpt.train.memory import Case, Memory, worst_memory

PROPOSALS = 3


@dataclass(frozen=True)
class Proposal:
    """Changed settings, and the memory that they lead to."""

    changes: tuple[tuple[str, Any], ...]
    memory: Memory

    def __str__(self) -> str:
        settings = ", ".join(f"{name}: {value}" for name, value in self.changes)
        return f"{settings} ({self.memory.total / 1e9:.1f} GB)"


def require_fit(case: Case, gpu_bytes: float) -> None:
    """Raise ``ConfigError``, with layouts that do fit, if a rank needs more than its GPU has."""
    needed = worst_memory(case).total
    if needed <= gpu_bytes:
        return
    found = proposals(case, gpu_bytes)
    way_out = "; ".join(map(str, found)) if found else "a smaller model, or more GPUs"
    raise ConfigError(
        f"parallel: this layout needs {needed / 1e9:.1f} GB a GPU, which has "
        f"{gpu_bytes / 1e9:.1f} GB. What fits: {way_out}. "
        "(train.memory_check: false tries it all the same.)"
    )


def proposals(case: Case, gpu_bytes: float) -> list[Proposal]:
    """Up to three ways to fit on the same number of GPUs, those that change least first."""
    found: list[Proposal] = []
    for layout, train in _candidates(case):
        if not _is_legal(case.model, layout, train):
            continue
        memory = worst_memory(replace(case, layout=layout, train=train))
        changes = tuple(_changes("parallel", case.layout, layout))
        changes += tuple(_changes("train", case.train, train))
        if memory.total <= gpu_bytes and changes:
            found.append(Proposal(changes, memory))
    return sorted(found, key=lambda one: len(one.changes))[:PROPOSALS]


def _candidates(case: Case) -> Iterator[tuple[Parallel, Train]]:
    model, layout, train = case.model, case.layout, case.train
    size = world_size(layout)
    micros = _divisors(train.micro_batch_size, train.micro_batch_size)[::-1]
    splits = [
        (tensor, pipeline, size // tensor // pipeline)
        for tensor in _divisors(size, model.n_head)
        for pipeline in _divisors(size // tensor, model.n_layer)
    ]
    for recompute, micro, zero, split in product(
        ("none", "selective", "full"), micros, range(layout.zero, 4), splits
    ):
        sizes = dict(zip(("tensor", "pipeline", "data"), split, strict=True))
        yield (
            layout.model_copy(update={**sizes, "zero": zero}),
            train.model_copy(update={"recompute": recompute, "micro_batch_size": micro}),
        )


def _divisors(number: int, most: int) -> list[int]:
    """Those of ``number`` that are no more than ``most``, smallest first."""
    return [part for part in range(1, min(number, most) + 1) if number % part == 0]


def _is_legal(model: Model, layout: Parallel, train: Train) -> bool:
    try:
        check_layout(model, layout, train)
    except ValueError:
        return False
    return True


def _changes(section: str, old: Any, new: Any) -> Iterator[tuple[str, Any]]:
    for name in type(old).model_fields:
        if getattr(old, name) != getattr(new, name):
            yield f"{section}.{name}", getattr(new, name)
