"""Watching a run: the view is drawn again every few seconds, until it is interrupted."""

import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.live import Live

from web2gpt.report.progress import RunState, look
from web2gpt.report.terminal import show


def watch(data: Path, run: Path, *, interval: float, once: bool) -> None:
    """Show a run until it is interrupted; once if asked for, or if nobody looks on."""
    console = Console()
    if once or not console.is_terminal:
        console.print(show(look(data, run)))
        return
    view = Live(console=console, auto_refresh=False)
    with suppress(KeyboardInterrupt), view:
        while True:
            view.update(show(look(data, run), console.height), refresh=True)
            time.sleep(interval)


def as_json(state: RunState) -> bytes:
    """A moment of a run: the stages' jobs, and the training's last figures."""
    training = state.training
    last: dict[str, Any] = {
        "step": training.loss.steps[-1] if training.loss else None,
        "steps": state.steps,
        "loss": training.loss.values[-1] if training.loss else None,
        "tokens_per_second": training.throughput.values[-1] if training.throughput else None,
        "seconds_left": state.steps_left_seconds,
        "restarts": training.restarts,
    }
    last |= {name: curve.values[-1] for name, curve in training.valid}
    stages = [asdict(group) | {"state": group.state} for group in state.groups]
    content = {"data": state.data, "run": state.run, "stages": stages, "training": last}
    return orjson.dumps(content, option=orjson.OPT_INDENT_2)
