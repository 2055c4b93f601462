"""Texts from a model, several at once.

Each text has a slot of the cache; the slot of a text that has ended goes to the next one at once.
A text's tokens are a function of the model, the settings, the seed, its prompt and its number (in
float32, on one machine's CPU): never of the batch. When a context outgrows the window, its last
half is kept and read anew from position 0.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from web2gpt.config.outputs import SampleRun
from web2gpt.config.training import Model
from web2gpt.errors import ConfigError, InputError
from web2gpt.model.gpt2 import GPT2
from web2gpt.sample.cached import CachedGPT2
from web2gpt.sample.draw import choose, penalize, random_stream
from web2gpt.sample.drawable import Drawable


@dataclass(frozen=True)
class Sampled:
    """A finished text. ``text`` is what follows the prompt; ``length`` its tokens, end-of-text not
    counted; ``finished``: it came to end-of-text or a stop string before ``max_new_tokens``.
    """

    prompt: str
    text: str
    length: int
    finished: bool


Watch = Callable[[list[int]], None]
"""Is told all tokens of a text so far, after each."""


@dataclass
class _Text:
    """A text being written. ``context`` is what the model sees of it, its last token not yet."""

    order: int
    prompt: str
    context: list[int]
    stream: np.random.Generator
    cached: bool = False  # whether the cache holds the context, its last token aside
    drawn: list[int] = field(default_factory=list)
    visible: int = 0
    finished: bool = False
    watch: Watch | None = None


class Sampler:
    """``for order, sampled in Sampler(...).run(prompts)``: texts in the order in which they end.

    Raises ``ConfigError`` for settings that give no text, ``InputError`` while drawing if the
    model's logits are not finite.
    """

    def __init__(self, model: GPT2, sizes: Model, drawable: Drawable, settings: SampleRun):
        if "" in settings.stop:
            raise ConfigError("sample.stop: an empty text ends every sample; leave it out.")
        self.drawable, self.settings = drawable, settings
        self.window = sizes.n_positions
        self._model, self._sizes = model, sizes
        self._spare: CachedGPT2 | None = None
        self._forbidden = ~drawable.allowed.to(model.embedding.wte.weight.device)

    def run(self, prompts: list[str]) -> Iterator[tuple[int, Sampled]]:
        """Draw ``num_samples`` texts for each prompt; ``order`` counts prompts, then samples."""
        return self._run(self._texts(prompts))

    def one(self, prompt: str, number: int = 0, watch: Watch | None = None) -> Sampled:
        """The sample of this number after ``prompt``: the same text as among many."""
        text = self._text(0, prompt, number)
        text.watch = watch
        ((_, sampled),) = self._run([text])
        return sampled

    @torch.inference_mode()
    def _run(self, texts: Iterable[_Text]) -> Iterator[tuple[int, Sampled]]:
        waiting = deque(texts)
        slots = min(self.settings.batch_size, len(waiting))
        cached = self._room(slots)
        active = [waiting.popleft() for _ in range(slots)]
        while active:
            self._advance(cached, active)
            left = list(range(len(active)))
            for slot, text in enumerate(list(active)):
                if not self._ends(text):
                    continue
                yield text.order, self._sampled(text)
                if waiting:
                    active[slot] = waiting.popleft()
                else:
                    left.remove(slot)
            if len(left) < len(active):
                active = [active[slot] for slot in left]
                cached.keep(left)
        self._spare = cached

    def _room(self, slots: int) -> CachedGPT2:
        """A cache for as many texts: the last run's, if it is one, with the graphs made for it."""
        spare, self._spare = self._spare, None
        if spare is not None and spare.slots == slots:
            return spare
        del spare  # not two at a time
        return CachedGPT2(self._model, self._sizes, slots)

    def _texts(self, prompts: list[str]) -> Iterator[_Text]:
        count = self.settings.num_samples
        for place, prompt in enumerate(prompts):
            for number in range(count):
                yield self._text(place * count + number, prompt, number)

    def _text(self, order: int, prompt: str, number: int) -> _Text:
        context = self.drawable.encode(prompt)[-self.window :]
        return _Text(order, prompt, context, random_stream(self.settings.seed, prompt, number))

    def _advance(self, cached: CachedGPT2, active: list[_Text]) -> None:
        """Draw one more token for each text."""
        fresh = {slot: text for slot, text in enumerate(active) if not text.cached}
        contexts = {slot: text.context[:-1] for slot, text in fresh.items()}
        cached.prefill({slot: tokens for slot, tokens in contexts.items() if tokens})
        last = [text.context[-1] for text in active]
        logits = cached.step(last, [len(text.context) - 1 for text in active])
        for text, token in zip(active, self._draw(logits, active).tolist(), strict=True):
            self._append(text, token)

    def _draw(self, logits: Tensor, active: list[_Text]) -> Tensor:
        settings = self.settings
        if not torch.isfinite(logits).all():
            raise InputError(
                "the model's logits are not finite: its weights hold NaN, or are beyond all "
                "measure; take an earlier checkpoint, or another model."
            )
        if settings.repetition_penalty != 1:
            logits = penalize(logits, _seen(logits, active), settings.repetition_penalty)
        logits = logits.masked_fill(self._forbidden, -torch.inf)
        young = [row for row, text in enumerate(active) if text.visible < settings.min_new_tokens]
        if young:
            logits[young, self.drawable.end_of_text] = -torch.inf
        uniform = torch.tensor([text.stream.random() for text in active], dtype=torch.float64)
        return choose(logits, uniform.to(logits.device), settings)

    def _append(self, text: _Text, token: int) -> None:
        text.cached = True
        if token == self.drawable.end_of_text:
            text.finished = True
            return
        text.drawn.append(token)
        if text.watch is not None:
            text.watch(text.drawn)
        text.visible += not self.drawable.blank[token]
        text.context.append(token)
        if len(text.context) > self.window:
            text.context = text.context[-max(1, self.window // 2) :]
            text.cached = False

    def _ends(self, text: _Text) -> bool:
        if self.settings.stop and not text.finished:
            written = self.drawable.decode(text.drawn)
            text.finished = any(stop in written for stop in self.settings.stop)
        return text.finished or len(text.drawn) >= self.settings.max_new_tokens

    def _sampled(self, text: _Text) -> Sampled:
        written = self.drawable.decode(text.drawn)
        ends = [written.find(stop) for stop in self.settings.stop if stop in written]
        return Sampled(
            text.prompt, written[: min(ends, default=None)], len(text.drawn), text.finished
        )


def _seen(logits: Tensor, active: list[_Text]) -> Tensor:
    """Tokens that stand in each text's context, bool (B, V)."""
    seen = torch.zeros_like(logits, dtype=torch.bool)
    for row, text in zip(seen, active, strict=True):
        row[text.context] = True
    return seen
