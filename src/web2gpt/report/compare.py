"""Two runs beside each other: what was set differently, and what came of it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from web2gpt.errors import InputError
from web2gpt.io.statistics import Statistics
from web2gpt.report.files import Missing, flatten
from web2gpt.report.settings import parse_config
from web2gpt.report.stages import read_stages
from web2gpt.report.terminal import WIDTH, curve_lines
from web2gpt.report.training import Curve, Training, read_training

ROWS = 12  # steps at which losses are set side by side


@dataclass(frozen=True)
class Side:
    """What is compared of one run."""

    name: str
    settings: dict[str, Any]
    stages: tuple[Statistics, ...]
    training: Training

    @classmethod
    def read(cls, run: Path) -> "Side":
        """A run's folder, and that of the corpus which its configuration names.

        Raises ``InputError`` if the run has no valid configuration.
        """
        config = parse_config(Missing().text(run / "config.yaml", "config.yaml"))
        if config is None:
            raise InputError(
                f"{run}: no config.yaml of a run in it; name a folder results/runs/NAME, or have "
                "it written by `snakemake config`."
            )
        data = run.absolute().parents[1] / "data" / config.data.name
        return cls(
            str(run),
            dict(flatten(config.model_dump(mode="json"))),
            read_stages(data / "stats", Missing()),
            read_training(run, Missing()),
        )


Rows = list[tuple[str, Any, Any]]


def differing_settings(one: Side, other: Side) -> Rows:
    """Settings with two values, in the order of the configuration."""
    names = dict.fromkeys((*one.settings, *other.settings))
    pairs = [(name, one.settings.get(name), other.settings.get(name)) for name in names]
    return [row for row in pairs if row[1] != row[2]]


def funnels(one: Side, other: Side) -> Rows:
    """Records in, kept, and lost by reason, of each stage that either run has."""
    sides = [{stage.stage: stage for stage in side.stages} for side in (one, other)]
    rows: Rows = []
    for name in dict.fromkeys(name for side in sides for name in side):
        counts = [_counts(side.get(name)) for side in sides]
        for what in dict.fromkeys(what for count in counts for what in count):
            rows.append((f"{name}: {what}", counts[0].get(what), counts[1].get(what)))
    return rows


def losses(one: Side, other: Side) -> Rows:
    """Losses at steps that both runs have, evenly spread, and the last ones of each."""
    curves = [side.training.loss for side in (one, other)]
    values = [dict(zip(curve.steps, curve.values, strict=True)) for curve in curves]
    common = sorted(values[0].keys() & values[1].keys())
    places = {place * (len(common) - 1) // ROWS for place in range(ROWS + 1)} if common else ()
    chosen = [common[place] for place in sorted(places)]
    rows: Rows = [(f"loss at step {step:,}", values[0][step], values[1][step]) for step in chosen]
    a, b = one.training, other.training
    rows.append(("steps", *_both(curves, lambda curve: curve.steps[-1])))
    rows.append(("last loss", *_both(curves, _last)))
    valid = [dict(a.valid), dict(b.valid)]
    for name in sorted(valid[0].keys() | valid[1].keys()):
        found = [side.get(name, Curve()) for side in valid]
        rows.append((f"last {name.replace('_', ' ')}", *_both(found, _last)))
    return [*rows, ("tokens a second, last", *_both([a.throughput, b.throughput], _last))]


def _both(curves: Sequence[Curve], read: Callable[[Curve], float]) -> tuple[Any, Any]:
    """A figure of each of two curves; None of an empty one."""
    first, second = (read(curve) if curve else None for curve in curves)
    return first, second


def show_comparison(one: Side, other: Side) -> None:
    """Print all that differs or can be set side by side."""
    parts: list[Any] = []
    for title, rows, figure in (
        ("settings that differ", differing_settings(one, other), _figure),
        ("funnel", funnels(one, other), _figure),
        ("training", losses(one, other), _measured),
    ):
        shown = [(name, figure(first), figure(second)) for name, first, second in rows]
        parts += [_table(title, shown, one, other), Text("")]
    console = Console()
    parts.append(_curves(one, other, min(WIDTH, max(20, console.width // 2 - 14))))
    console.print(Group(*parts))


def _curves(one: Side, other: Side, width: int) -> Table:
    """Both losses on the same axes, side by side."""
    table = Table.grid(padding=(0, 2))
    curves = [side.training.loss for side in (one, other)]
    table.add_row(*(Text(f"loss of {side.name}") for side in (one, other)))
    table.add_row(*(Text("\n".join(curve_lines(curve, *curves, width=width))) for curve in curves))
    return table


def comparison_json(one: Side, other: Side) -> bytes:
    """The same as JSON: for each part, {name: [first, second]}."""
    content = {
        "runs": [one.name, other.name],
        "settings": _as_object(differing_settings(one, other)),
        "funnel": _as_object(funnels(one, other)),
        "training": _as_object(losses(one, other)),
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2)


def _as_object(rows: Iterable[tuple[str, Any, Any]]) -> dict[str, list[Any]]:
    return {name: [first, second] for name, first, second in rows}


def _counts(stage: Statistics | None) -> dict[str, int]:
    if stage is None:
        return {}
    lost = stage.dropped + stage.errors
    return {"in": stage.read, "kept": stage.kept, **dict(lost.most_common())}


def _last(curve: Curve) -> float:
    return curve.values[-1]


def _table(title: str, rows: Rows, one: Side, other: Side) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("")
    for side in (one, other):
        table.add_column(Text(side.name), justify="right", overflow="fold")
    for name, first, second in rows:
        table.add_row(Text(name), Text(first), Text(second))
    if not rows:
        table.add_row("none")
    return table


def _measured(value: Any) -> str:
    """A figure with as many decimals as its neighbours."""
    if isinstance(value, float):
        return f"{value:,.4f}" if abs(value) < 1000 else f"{value:,.0f}"
    return _figure(value)


def _figure(value: Any) -> str:
    match value:
        case None:
            return "-"
        case float():
            return f"{value:,.6g}"
        case int() if not isinstance(value, bool):
            return f"{value:,}"
        case _:
            return str(value)
