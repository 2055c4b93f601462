"""How a figure is drawn and becomes a part of the page: SVG text.

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
from matplotlib.ticker import MaxNLocator

from web2gpt.report.training import Curve

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


@dataclass(frozen=True)
class Figure:
    """A drawing with what stands above it and what it says to those who cannot see it."""

    name: str
    title: str
    alternative: str
    svg: str


def new_axes(height: float) -> tuple[Canvas, Axes]:
    """An empty drawing, ``height`` inches high."""
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(WIDTH, height), layout="constrained")
        return canvas, canvas.add_subplot()


def finish_bars(axes: Axes, label: str, texts: Sequence[str], ends: Sequence[float]) -> None:
    """What horizontal bars share: first on top, a figure at the end of each."""
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(label)
    axes.margins(x=0.25)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    for row, (text, end) in enumerate(zip(texts, ends, strict=True)):
        axes.annotate(text, (end, row), (4, 0), textcoords="offset points", va="center", color=INK)


def count_in_whole_numbers(axes: Axes) -> None:
    """Ticks of horizontal bars that count things."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def paired_bars(
    name: str, title: str, rows: Sequence[tuple[str, float, float]], series: tuple[str, str]
) -> Figure:
    """Documents, two bars a row: (name, first, second); ``series`` names what the two are."""
    canvas, axes = new_axes(1.2 + 0.42 * len(rows))
    places = range(len(rows))
    for offset, column, colour in ((-0.19, 1, LOST), (0.19, 2, KEPT)):
        values = [float(row[column]) for row in rows]
        axes.barh([place + offset for place in places], values, height=0.36, color=colour,
                  label=series[column - 1])  # fmt: skip
        for place, value in zip(places, values, strict=True):
            axes.annotate(f"{value:,.0f}", (value, place + offset), (3, 0), fontsize=7.5,
                          textcoords="offset points", va="center", color=INK)  # fmt: skip
    axes.set_yticks(list(places), [row[0] for row in rows])
    finish_bars(axes, "documents", [], [])
    count_in_whole_numbers(axes)
    canvas.legend(loc="outside lower center", ncols=2, frameon=False, labelcolor=INK)
    told = "; ".join(f"{row}: {a:,.0f} {series[0]}, {b:,.0f} {series[1]}" for row, a, b in rows)
    return finish(canvas, name, title, told)


def thinned(curve: Curve) -> tuple[list[int], list[float]]:
    """At most about ``MAX_POINTS`` points, the last one among them; what is not finite is a gap."""
    step = math.ceil(len(curve) / MAX_POINTS)
    chosen = sorted({*range(0, len(curve), step), len(curve) - 1})
    values = [curve.values[i] if math.isfinite(curve.values[i]) else math.nan for i in chosen]
    return [curve.steps[i] for i in chosen], values


def path_of(curve: Curve) -> str:
    """A curve's ends in words."""
    first, last = curve.values[0], curve.values[-1]
    return f"from {first:.4g} at step {curve.steps[0]:,} to {last:.4g} at step {curve.steps[-1]:,}"


def finish(canvas: Canvas, name: str, title: str, alternative: str) -> Figure:
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
