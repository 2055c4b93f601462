"""How long a run is, and which samples each of its steps sees.

Invariant: step k (from 1) takes the samples from ``first_sample(k)`` up to ``first_sample(k + 1)``;
that is a function of the settings alone, so a resumed run needs nothing but its step.

The ramp-up of the global batch is Megatron's (Narayanan et al. 2021): it grows by a fixed increment
each time an equal share of ``rampup_samples`` has been seen.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from web2gpt.config.training import Train

DEFAULT_STEPS = 300


@dataclass(frozen=True)
class Stretch:
    """Steps from ``first_step`` on have ``batch_size``; the first begins at ``first_sample``."""

    first_step: int
    first_sample: int
    batch_size: int

    def sample_at(self, step: int) -> int:
        return self.first_sample + (step - self.first_step) * self.batch_size

    def step_at(self, sample: int) -> int:
        """The first step that begins at ``sample`` or after it."""
        return self.first_step + -(-(sample - self.first_sample) // self.batch_size)


@dataclass(frozen=True)
class Length:
    """The steps of a run. ``skipped`` are ranges, first and last, that are passed over."""

    steps: int
    stretches: tuple[Stretch, ...]
    skipped: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, train: Train, n_positions: int) -> Self:
        """The length that ``train`` asks for; the last step may go beyond it."""
        stretches = tuple(_stretches(train))
        skipped = tuple(_range(text) for text in train.skip_steps)
        samples = train.samples or -(-(train.tokens or 0) // n_positions)
        if not samples:
            return cls(train.steps or DEFAULT_STEPS, stretches, skipped)
        last = next(s for s in reversed(stretches) if s.first_sample < samples)
        return cls(last.step_at(samples) - 1, stretches, skipped)

    @property
    def samples(self) -> int:
        """Samples of the whole run."""
        return self.first_sample(self.steps + 1)

    def first_sample(self, step: int) -> int:
        """The sample that ``step`` begins with."""
        return self._stretch(step).sample_at(step)

    def batch_size(self, step: int) -> int:
        """The global batch of ``step``."""
        return self._stretch(step).batch_size

    def is_skipped(self, step: int) -> bool:
        return any(first <= step <= last for first, last in self.skipped)

    def _stretch(self, step: int) -> Stretch:
        return self.stretches[bisect_right(self.stretches, step, key=lambda s: s.first_step) - 1]


def batch_sizes(train: Train) -> list[int]:
    """The global batches of a run, in order: one, or those of its ramp-up and the full one."""
    start, full = train.rampup_start or train.global_batch_size, train.global_batch_size
    return [*range(start, full, train.rampup_increment), full]


def _stretches(train: Train) -> Iterator[Stretch]:
    sizes = batch_sizes(train)
    stretch = Stretch(1, 0, sizes[0])
    yield stretch
    for number, size in enumerate(sizes[1:], start=1):
        # rounded up to whole samples
        begins = -(-number * train.rampup_samples // (len(sizes) - 1))
        step = max(stretch.step_at(begins), stretch.first_step)
        stretch = Stretch(step, stretch.sample_at(step), size)
        yield stretch


def _range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last)
