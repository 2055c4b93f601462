"""Figures on the training: one quantity over the steps, each."""

import math
from collections.abc import Iterator

from matplotlib.ticker import MaxNLocator

from web2gpt.report.drawing import (
    ERROR,
    INK,
    KEPT,
    LOST,
    Figure,
    finish,
    new_axes,
    path_of,
    thinned,
)
from web2gpt.report.training import Curve, Training

MAX_MARKS = 40  # restarts and steps not applied that are drawn
STYLES = ("o", "s", "^", "D")


def training_figures(training: Training) -> Iterator[Figure | None]:
    """In the order of the page."""
    yield loss_curve(training)
    yield line("learning-rate", "Learning rate", "learning rate", training.learning_rate)
    yield line("gradient-norm", "Gradient norm", "norm before clipping", training.gradient_norm)
    yield line("throughput", "Throughput", "tokens a second", training.throughput)
    yield line("memory", "Memory of the first process", "GiB, at its peak", training.memory,
               training.estimated)  # fmt: skip


def loss_curve(training: Training) -> Figure | None:
    """Training and validation losses over the steps; restarts as vertical lines."""
    if not training:
        return None
    canvas, axes = new_axes(3.2)
    told = []
    if training.loss:
        axes.plot(*thinned(training.loss), color=KEPT, linewidth=1.2, label="training")
        told.append(f"training loss {path_of(training.loss)}")
    for (name, curve), marker in zip(training.valid, STYLES, strict=False):
        label = name.replace("valid_loss", "validation", 1).replace("_", " ")
        axes.plot(*thinned(curve), color=LOST, marker=marker, markersize=4, label=label)
        told.append(f"{label} loss {path_of(curve)}")
    for steps, label, colour, style in (
        (training.restarts or (), "restart", INK, ":"),
        (training.not_applied, "not applied", ERROR, "-"),
    ):
        for step, named in zip(steps[:MAX_MARKS], (label, *[None] * MAX_MARKS), strict=False):
            axes.axvline(step, color=colour, linestyle=style, linewidth=0.8, label=named)
    told += _marks(training)
    axes.set(xlabel="step", ylabel="loss (nats a token)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, labelcolor=INK)
    return finish(canvas, "loss", "Loss", "; ".join(told))


def _marks(training: Training) -> Iterator[str]:
    if training.restarts:
        yield f"dotted lines: restarts after steps {', '.join(map(str, training.restarts))}"
    if training.not_applied:
        yield f"red lines: {len(training.not_applied):,} steps that were not applied"


def line(
    name: str, title: str, label: str, curve: Curve, expected: float | None = None
) -> Figure | None:
    """One quantity over the steps; ``expected`` is drawn as a level of its own."""
    if not curve:
        return None
    canvas, axes = new_axes(2.4)
    axes.plot(*thinned(curve), color=KEPT, label="measured")
    told = f"{label} {path_of(curve)}"
    top = max(filter(math.isfinite, curve.values), default=1)
    if expected is not None:
        axes.axhline(expected, color=LOST, linestyle="--", label="estimated")
        axes.legend(frameon=False, labelcolor=INK)
        told += f"; estimated before: {expected:.4g}"
        top = max(top, expected)
    axes.set(xlabel="step", ylabel=label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0, top=1.1 * top or 1)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    return finish(canvas, name, title, told)
