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
    """``step`` by graphs, for up to ``slots`` texts and ``window`` positions. The logits that it
    gives stand until the next step."""

    def __init__(self, step: Step, slots: int, window: int):
        self._step, self._slots, self._window = step, slots, window
        self._captured: dict[tuple[int, int], _Captured] = {}

    def __call__(self, tokens: Tensor, places: Tensor, seen: int) -> Tensor:
        rows = min(_power_of_two(len(tokens)), self._slots)
        seen = min(_power_of_two(max(seen, SHORTEST)), self._window)
        captured = self._captured.get((rows, seen))
        if captured is None:
            captured = self._captured[rows, seen] = self._capture(tokens, places, rows, seen)
        captured.tokens[: len(tokens)] = tokens
        captured.places[: len(places)] = places
        captured.graph.replay()
        return captured.logits[: len(tokens)]

    def _capture(self, tokens: Tensor, places: Tensor, rows: int, seen: int) -> _Captured:
        """The step is first run as it is, on a stream of its own, as torch asks for."""
        spare = (0, rows - len(tokens))
        tokens, places = (F.pad(given, spare) for given in (tokens, places))
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's
        current = torch.cuda.current_stream()
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            self._step(tokens, places, seen)
        current.wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = self._step(tokens, places, seen)
        return _Captured(graph, tokens, places, logits)


def _power_of_two(count: int) -> int:
    """The least that is not less."""
    return 1 << (count - 1).bit_length()
