"""A step of one token a text as CUDA graphs: replayed as a whole, not launched kernel by kernel.

Such a step is some hundred kernels of a few microseconds each, which Python takes far longer to
launch than a GPU to run. A graph's shapes and addresses are fixed: the numbers of texts and of
positions are rounded up, to powers of two, and each pair is captured when it first comes up.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Step = Callable[[Tensor, Tensor, int], Tensor]
"""Tokens (B), their positions (B), and how many positions can be seen -> logits (B, V). Done twice
with the same tokens it must leave what it left the first time."""

SHORTEST = 64  # positions; below it a shorter step is no faster


@dataclass(frozen=True)
class _Captured:
    graph: torch.cuda.CUDAGraph
    tokens: Tensor
    places: Tensor
    logits: Tensor


class StepGraphs:
    """Graphs of one step, for up to ``slots`` texts and ``window`` positions."""

    def __init__(self, slots: int, window: int):
        self._slots, self._window = slots, window
        self._captured: dict[tuple[int, int], _Captured] = {}
        self._stream: torch.cuda.Stream | None = None

    def run(self, step: Step, tokens: Tensor, places: Tensor, seen: int) -> Tensor:
        """``step``, the same one at each call. Its logits stand until the next call."""
        rows = min(_power_of_two(len(tokens)), self._slots)
        seen = min(_power_of_two(max(seen, SHORTEST)), self._window)
        captured = self._captured.get((rows, seen))
        if captured is None:
            padded, at = (F.pad(given, (0, rows - len(given))) for given in (tokens, places))
            captured = self._captured[rows, seen] = self._capture(step, padded, at, seen)
        captured.tokens[: len(tokens)] = tokens
        captured.places[: len(places)] = places
        captured.graph.replay()
        return captured.logits[: len(tokens)]

    def _capture(self, step: Step, tokens: Tensor, places: Tensor, seen: int) -> _Captured:
        """The step is first run as it is, on a stream of its own, as torch asks for."""
        if self._stream is None:
            self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            step(tokens, places, seen)
        current.wait_stream(self._stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = step(tokens, places, seen)
        return _Captured(graph, tokens, places, logits)


def _power_of_two(count: int) -> int:
    """The least that is not less."""
    return 1 << (count - 1).bit_length()
