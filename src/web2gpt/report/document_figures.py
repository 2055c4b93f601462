"""Figures on the documents: where they are from, in which languages, how long, how often copied."""

from collections import Counter

from web2gpt.report.drawing import (
    KEPT,
    LOST,
    Figure,
    count_in_whole_numbers,
    finish,
    finish_bars,
    new_axes,
    paired_bars,
)
from web2gpt.report.duplicates import Duplicates
from web2gpt.report.survey import Survey

MAX_ROWS = 12
MAX_SIZES = 12
SERIES = ("before", "in the corpus")


def domains(before: Survey, after: Survey) -> Figure | None:
    """The domains with the most documents, before dedup and clean and after."""
    chosen = _largest(before.domains or after.domains)
    return _compared("domains", "Domains", before.domains, after.domains, chosen)


def lengths(before: Survey, after: Survey) -> Figure | None:
    """Documents by length, before dedup and clean and after."""
    first = Counter({_span(power): n for power, n in sorted(before.lengths.items())})
    second = Counter({_span(power): n for power, n in sorted(after.lengths.items())})
    chosen = [_span(power) for power in sorted({*before.lengths, *after.lengths})]
    return _compared("lengths", "Lengths, in characters", first, second, chosen)


def languages(after: Survey, dropped: Counter[str]) -> Figure | None:
    """The languages of what was kept and of what clean dropped for its language."""
    counts = after.languages + dropped
    if not counts:
        return None
    rows = [(name, dropped[name], after.languages[name]) for name in _largest(counts)]
    series = ("dropped for it", "in the corpus")
    return paired_bars("languages", "Languages", rows, series)


def cluster_sizes(duplicates: Duplicates) -> Figure | None:
    """How many sets of near-duplicates have how many documents."""
    if not duplicates.sizes:
        return None
    sizes = sorted(duplicates.sizes)
    rows = {f"{size:,} documents": duplicates.sizes[size] for size in sizes[: MAX_SIZES - 1]}
    rest = sizes[MAX_SIZES - 1 :]
    if rest:
        rows[f"{rest[0]:,} to {rest[-1]:,}"] = sum(duplicates.sizes[size] for size in rest)
    canvas, axes = new_axes(0.9 + 0.3 * len(rows))
    axes.barh(list(rows), list(rows.values()), color=LOST, height=0.7)
    counts = list(rows.values())
    finish_bars(axes, "sets of near-duplicates", [f"{count:,}" for count in counts], counts)
    count_in_whole_numbers(axes)
    told = "; ".join(f"{count:,} sets of {name}" for name, count in rows.items())
    return finish(canvas, "clusters", "Sizes of sets of near-duplicates", told)


def _compared(
    name: str, title: str, before: Counter[str], after: Counter[str], chosen: list[str]
) -> Figure | None:
    """Two bars a row; one where what was before is not known."""
    if not before and not after:
        return None
    if before:
        rows = [(row, before[row], after[row]) for row in chosen]
        return paired_bars(name, title, rows, SERIES)
    canvas, axes = new_axes(0.9 + 0.3 * len(chosen))
    counts = [after[row] for row in chosen]
    axes.barh(chosen, counts, color=KEPT, height=0.7)
    finish_bars(axes, "documents in the corpus", [f"{count:,}" for count in counts], counts)
    told = "; ".join(f"{row}: {after[row]:,}" for row in chosen)
    return finish(canvas, name, title, told)


def _largest(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda name: (-counts[name], name))[:MAX_ROWS]


def _span(power: int) -> str:
    """Lengths from 2 to this power to its double."""
    return f"{1 << power:,} to {(2 << power) - 1:,}"
