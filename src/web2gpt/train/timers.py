"""Where a step's time goes, on demand: forward, backward, reduction, optimizer.

The engine's own methods are wrapped; the GPU is waited for at each of their ends, which costs some
speed. Reduction inside backward (ZeRO 2 and 3) counts as backward.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

from web2gpt.parallel.deepspeed_internals import wrap_parts


class Timers:
    """Seconds by part since the last ``take``."""

    def __init__(self, engine: Any, device: torch.device):
        self._device = device
        self._seconds: dict[str, float] = {}
        self._running: list[str] = []
        wrap_parts(engine, self._timed)

    def take(self) -> dict[str, float]:
        found = {f"{part}_seconds": round(spent, 6) for part, spent in self._seconds.items()}
        self._seconds.clear()
        return found

    def _timed(self, part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            began = self._now()
            self._running.append(part)
            try:
                return method(*arguments, **named)
            finally:
                self._running.pop()
                spent = self._now() - began
                self._add(part, spent)
                if self._running:  # do not count it twice
                    self._add(self._running[-1], -spent)

        return timed

    def _add(self, part: str, seconds: float) -> None:
        self._seconds[part] = self._seconds.get(part, 0.0) + seconds

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()
