"""The figures, as SVG text to be placed in the page.

The same numbers give the same bytes: no date, no random ids. Colours are placeholders that become
CSS variables, so that one drawing serves light, dark and print; text stays text, so that it can be
read aloud, searched, and set in the page's own font.
"""

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import NullFormatter

from web2gpt.io.statistics import Statistics
from web2gpt.report.evidence import Curve, Evidence

INK, GRID, KEPT, LOST, ERROR = "#010101", "#020202", "#030303", "#040404", "#050505"
VARIABLES = {INK: "ink", GRID: "grid", KEPT: "kept", LOST: "lost", ERROR: "error"}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "web2gpt",
    "text.parse_math": False,
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "xtick.color": INK,
    "ytick.color": INK,
}
WIDTH = 5.0  # inches: on a phone the text is then as large as it is here
MAX_POINTS = 1000  # of a line: more cannot be told apart
MAX_REASONS = 16


@dataclass(frozen=True)
class Figure:
    """A drawing with what stands above it and what it says to those who cannot see it."""

    name: str
    title: str
    alternative: str
    svg: str


def all_figures(evidence: Evidence) -> tuple[Figure, ...]:
    """Every figure that the evidence has numbers for."""
    drawn = (
        funnel(evidence.stages),
        losses(evidence.stages),
        loss_curve(evidence.train, evidence.valid),
        line("learning-rate", "Learning rate", "learning rate", evidence.learning_rate),
        line("gradient-norm", "Gradient norm", "norm before clipping", evidence.gradient_norm),
        line("throughput", "Throughput", "tokens a second", evidence.throughput),
        durations(evidence),
    )
    return tuple(figure for figure in drawn if figure)


def funnel(stages: Sequence[Statistics]) -> Figure | None:
    """Records into each stage: kept, dropped by a rule, unreadable."""
    if not stages:
        return None
    parts = {
        "kept": (KEPT, [stage.kept for stage in stages]),
        "dropped by a rule": (LOST, [stage.dropped.total() for stage in stages]),
        "unreadable": (ERROR, [stage.errors.total() for stage in stages]),
    }
    names = [f"{stage.stage} ({stage.unit})" for stage in stages]
    canvas, axes = _axes(1.2 + 0.38 * len(stages))
    left = [0] * len(stages)
    for label, (colour, counts) in parts.items():
        axes.barh(names, counts, left=left, color=colour, label=label, height=0.7)
        left = [start + count for start, count in zip(left, counts, strict=True)]
    _bars(axes, "records into the stage", [f"{s.kept:,} of {s.read:,}" for s in stages], left)
    canvas.legend(loc="outside lower center", ncols=3, frameon=False)
    told = "; ".join(f"{s.stage}: {s.kept:,} of {s.read:,} {s.unit} kept" for s in stages)
    return _finish(canvas, "funnel", "From URLs to tokens", told)


def losses(stages: Sequence[Statistics]) -> Figure | None:
    """The commonest reasons for which records were lost."""
    reasons = [
        (count, f"{stage.stage}: {reason}", colour)
        for stage in stages
        for counts, colour in ((stage.dropped, LOST), (stage.errors, ERROR))
        for reason, count in counts.items()
        if count
    ]
    chosen = sorted(reasons, key=lambda reason: (-reason[0], reason[1]))[:MAX_REASONS]
    if not chosen:
        return None
    counts, names, colours = zip(*chosen, strict=True)
    canvas, axes = _axes(0.9 + 0.26 * len(chosen))
    axes.barh(names, counts, color=colours, height=0.7)
    axes.set_xscale("log")
    axes.set_xlim(left=0.7)
    axes.xaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    _bars(axes, "records lost (logarithmic)", [f"{count:,}" for count in counts], counts)
    told = "; ".join(f"{name}: {count:,}" for count, name, _ in chosen)
    return _finish(canvas, "losses", "Why records were lost", told)


def loss_curve(train: Curve, valid: Curve) -> Figure | None:
    """Training and validation loss over the steps."""
    if not train and not valid:
        return None
    canvas, axes = _axes(3.2)
    told = []
    for name, curve, colour, marker in (
        ("training", train, KEPT, ""),
        ("validation", valid, LOST, "o"),
    ):
        if curve:
            axes.plot(*_thinned(curve), color=colour, marker=marker, markersize=4, label=name)
            told.append(f"{name} loss {_path(curve)}")
    axes.set(xlabel="step", ylabel="loss (nats a token)")
    axes.legend(frameon=False)
    return _finish(canvas, "loss", "Loss", "; ".join(told))


def line(name: str, title: str, label: str, curve: Curve) -> Figure | None:
    """One quantity over the steps."""
    if not curve:
        return None
    canvas, axes = _axes(2.4)
    axes.plot(*_thinned(curve), color=KEPT)
    axes.set(xlabel="step", ylabel=label)
    axes.set_ylim(bottom=0, top=1.1 * max(filter(math.isfinite, curve.values), default=1) or 1)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    return _finish(canvas, name, title, f"{label} {_path(curve)}")


def durations(evidence: Evidence) -> Figure | None:
    """Time of each rule over all its jobs; of each data stage where rules were not measured."""
    times = {cost.rule: cost.seconds for cost in evidence.costs} or {
        stage.stage: stage.time.get("seconds", 0.0) for stage in evidence.stages
    }
    if not times:
        return None
    canvas, axes = _axes(0.9 + 0.3 * len(times))
    axes.barh(list(times), list(times.values()), color=KEPT, height=0.7)
    labels = [f"{seconds:,.1f} s" for seconds in times.values()]
    _bars(axes, "seconds, all jobs together", labels, list(times.values()))
    told = "; ".join(f"{name}: {seconds:.1f} s" for name, seconds in times.items())
    return _finish(canvas, "time", "Time of each stage", told)


def _axes(height: float) -> tuple[Canvas, Axes]:
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(WIDTH, height), layout="constrained")
        return canvas, canvas.add_subplot()


def _bars(axes: Axes, label: str, texts: Sequence[str], ends: Sequence[float]) -> None:
    """What horizontal bars share: first on top, a figure at the end of each."""
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(label)
    axes.margins(x=0.25)
    for row, (text, end) in enumerate(zip(texts, ends, strict=True)):
        axes.annotate(text, (end, row), (4, 0), textcoords="offset points", va="center", color=INK)


def _thinned(curve: Curve) -> tuple[list[int], list[float]]:
    """At most about ``MAX_POINTS`` points, the last one among them; what is not finite is a gap."""
    step = math.ceil(len(curve) / MAX_POINTS)
    chosen = sorted({*range(0, len(curve), step), len(curve) - 1})
    values = [curve.values[i] if math.isfinite(curve.values[i]) else math.nan for i in chosen]
    return [curve.steps[i] for i in chosen], values


def _path(curve: Curve) -> str:
    first, last = curve.values[0], curve.values[-1]
    return f"from {first:.4g} at step {curve.steps[0]:,} to {last:.4g} at step {curve.steps[-1]:,}"


def _finish(canvas: Canvas, name: str, title: str, alternative: str) -> Figure:
    """Write the drawing as SVG and make it a part of the page."""
    text = io.StringIO()
    with mpl.rc_context(STYLE):
        canvas.patch.set_visible(False)
        for axes in canvas.axes:
            axes.patch.set_visible(False)
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r"(url\(#|href=\"#)", rf"\g<1>{name}-", svg).replace("xlink:href", "href")
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    return Figure(name, title, alternative, svg)
