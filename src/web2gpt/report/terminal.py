"""A run's state as a terminal shows it: a row a stage, and the loss curve drawn with dots."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from web2gpt.report.progress import JobGroup, RunState
from web2gpt.report.training import Curve

WIDTH, HEIGHT = 60, 10  # characters of the curve; a character holds 2 x 4 dots
BRAILLE = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # [row][column] of a character
STYLES = {"done": "green", "running": "bold", "stopped": "yellow"}


def show(state: RunState, lines: int | None = None) -> Group:
    """The whole view; on a terminal of few ``lines``, stages that are done share one of them."""
    parts: list[Any] = []
    groups = state.groups
    if lines is not None and len(groups) + HEIGHT + 6 > lines:
        done = [group.name for group in groups if group.state == "done"]
        groups = tuple(group for group in groups if group.state != "done")
        parts.append(Text(f"done: {', '.join(done) or 'nothing yet'}"))
    parts.append(_stages(state, groups))
    if state.training.loss:
        parts += [
            Text(""),
            Text(training_line(state)),
            *map(Text, curve_lines(state.training.loss)),
        ]
    return Group(*parts)


def _stages(state: RunState, groups: Sequence[JobGroup]) -> Table:
    title = Text(f"data {state.data}, run {state.run}")
    table = Table(title=title, title_justify="left", box=None,
                  title_style="bold", pad_edge=False)  # fmt: skip
    for name in ("stage", "jobs", "state", "records", "a second", "left"):
        table.add_column(name, justify="left" if name in ("stage", "state") else "right")
    for group in groups:
        table.add_row(group.name, f"{group.done}/{group.jobs}",
                      Text(group.state, style=STYLES[group.state]), Text(_records(group)),
                      f"{group.rate:,.1f}" if group.rate else "", _left(state, group))  # fmt: skip
    if not state.groups:
        table.add_row("nothing has begun yet")
    return table


def _records(group: JobGroup) -> str:
    if not group.records:
        return ""
    of = f" of {group.expected:,}" if group.expected else ""
    return f"{group.records:,}{of} {group.unit}"


def _left(state: RunState, group: JobGroup) -> str:
    seconds = state.steps_left_seconds if group.name == "train" else group.seconds_left
    return "" if seconds is None or group.state != "running" else duration(seconds)


def training_line(state: RunState) -> str:
    """Step, losses, speed."""
    training = state.training
    of = f" of {state.steps:,}" if state.steps else ""
    parts = [f"step {training.loss.steps[-1]:,}{of}", f"loss {training.loss.values[-1]:.4f}"]
    parts += [f"{name.replace('_', ' ')} {curve.values[-1]:.4f}" for name, curve in training.valid]
    if training.throughput:
        parts.append(f"{training.throughput.values[-1]:,.0f} tokens/s")
    if training.restarts:
        parts.append(f"{len(training.restarts)} restarts")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as 1:02:03."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def curve_lines(
    curve: Curve, *beside: Curve, width: int = WIDTH, height: int = HEIGHT
) -> Iterator[str]:
    """A curve, on axes that hold those ``beside`` it too; what is not finite is left out."""
    points = _finite(curve)
    framed = [point for one in (curve, *beside) for point in _finite(one)]
    if not points:
        return
    left, right = min(step for step, _ in framed), max(step for step, _ in framed)
    bottom, top = min(value for _, value in framed), max(value for _, value in framed)
    cells = [[0] * width for _ in range(height)]
    for step, value in points:
        column = _place(step, left, right, 2 * width)
        row = 4 * height - 1 - _place(value, bottom, top, 4 * height)
        cells[row // 4][column // 2] |= DOTS[row % 4][column % 2]
    labels = {0: f"{top:.3g}", height - 1: f"{bottom:.3g}"}
    for number, row_of_cells in enumerate(cells):
        yield f"{labels.get(number, ''):>8} ┤{_characters(row_of_cells)}"
    yield f"{'':9}└{'─' * width}"
    yield f"{'':9} {left:<{width // 2},}{f'step {right:,}':>{width - width // 2}}"


def _finite(curve: Curve) -> list[tuple[int, float]]:
    pairs = zip(curve.steps, curve.values, strict=True)
    return [(step, value) for step, value in pairs if math.isfinite(value)]


def _characters(cells: Sequence[int]) -> str:
    return "".join(chr(BRAILLE + cell) if cell else " " for cell in cells).rstrip()


def _place(value: float, low: float, high: float, count: int) -> int:
    share = (value - low) / (high - low) if high > low else 0.5
    return min(count - 1, int(share * count))
