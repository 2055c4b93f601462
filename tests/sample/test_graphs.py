"""What stands around a step's CUDA graphs, with the step itself in a graph's place: rounded numbers
of texts and positions, spare rows, numbers left over from an earlier call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from torch import Tensor

from web2gpt.config.outputs import SampleRun
from web2gpt.sample import cached, graphs
from web2gpt.sample.generate import Sampler

PROMPTS = ["the cat", "s", "", "a hat and the other mat on the mat", "cat"]


@dataclass(frozen=True)
class Replayed:
    """Runs the step on the tensors it was captured with, as a graph would."""

    step: graphs.Step
    tokens: Tensor
    places: Tensor
    logits: Tensor
    seen: int

    def replay(self) -> None:
        self.logits.copy_(self.step(self.tokens, self.places, self.seen))


class Direct(graphs.StepGraphs):
    def _capture(self, step: graphs.Step, tokens: Tensor, places: Tensor, seen: int) -> Any:
        logits = step(tokens, places, seen)
        graph: Any = Replayed(step, tokens, places, logits, seen)
        return graphs._Captured(graph, tokens, places, logits)


@pytest.mark.parametrize("batch_size", [1, 3, 5])
def test_texts_are_those_of_the_plain_step(
    twin: Any, monkeypatch: pytest.MonkeyPatch, batch_size: int
) -> None:
    settings = SampleRun(num_samples=3, max_new_tokens=50, batch_size=batch_size, stop=("t",))
    sampler: Callable[[], Sampler] = lambda: Sampler(  # noqa: E731 - one line, used twice
        twin.ours, twin.stated.model, twin.drawable, settings
    )
    plain = dict(sampler().run(PROMPTS))
    made: list[Direct] = []
    begin = cached.CachedGPT2.__init__

    def with_graphs(self: cached.CachedGPT2, *sizes: Any) -> None:
        begin(self, *sizes)
        made.append(Direct(self.slots, self.window))
        self._graphs = made[-1]

    monkeypatch.setattr(cached.CachedGPT2, "__init__", with_graphs)
    monkeypatch.setattr(graphs, "SHORTEST", 4)
    by_graphs = sampler()
    assert dict(by_graphs.run(PROMPTS)) == plain
    assert dict(by_graphs.run(PROMPTS)) == plain  # by the graphs of the first run
    ((_, slots),) = {(id(one), one._slots) for one in made}
    rows, seen = zip(*made[0]._captured, strict=True)
    assert max(rows) == slots and max(seen) <= twin.stated.model.n_positions
    assert all(number in (4, 8, 16, 32) for number in seen)
