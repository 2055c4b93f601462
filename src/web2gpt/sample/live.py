"""Texts on a terminal as they are drawn, and a dialogue of prompts and texts.

Invariant: what has been printed when a text ends is what ``Sampled.text`` holds. Characters whose
bytes are not all drawn, and what may be the start of a stop string, wait for the next tokens.
"""

import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import IO

from web2gpt.sample.generate import Sampled, Sampler

UNFINISHED = "\ufffd"  # what a decoder makes of half a character


class LiveText:
    """The text of one sample, printed piece by piece."""

    def __init__(self, sampler: Sampler, screen: IO[str]):
        self._sampler, self._screen = sampler, screen
        self._shown = ""

    def watch(self, drawn: list[int]) -> None:
        """Print what is sure by now."""
        written = self._sampler.drawable.decode(drawn)
        sure = written.rstrip(UNFINISHED)
        self._show(sure[: len(sure) - held_back(sure, self._sampler.settings.stop)])

    def end(self, sampled: Sampled) -> None:
        """Print the rest."""
        self._show(sampled.text)
        print("" if sampled.finished else " …", file=self._screen, flush=True)

    def _show(self, text: str) -> None:
        if text.startswith(self._shown):
            print(text[len(self._shown) :], end="", file=self._screen, flush=True)
            self._shown = text


def held_back(text: str, stops: Iterable[str]) -> int:
    """How many characters at the end could belong to a stop string."""
    held = 0
    for stop in stops:
        found = text.find(stop)
        if found >= 0:
            held = max(held, len(text) - found)
        for length in range(min(len(stop) - 1, len(text)), held, -1):
            if text.endswith(stop[:length]):
                held = length
                break
    return held


def stream(sampler: Sampler, prompts: list[str], screen: IO[str] | None = None) -> list[Sampled]:
    """Draw all texts one after the other, each shown as it comes."""
    screen = screen or sys.stdout
    found: list[Sampled] = []
    for prompt in prompts:
        for number in range(sampler.settings.num_samples):
            found.append(_one(sampler, prompt, number, screen))
    return found


def converse(sampler: Sampler, lines: Iterable[str], screen: IO[str] | None = None) -> None:
    """Answer each line with a text that goes on with it, until the lines end. A prompt given again
    gets its next sample, so that a session can be repeated."""
    screen = screen or sys.stdout
    asked: Counter[str] = Counter()
    print("A prompt a line; an empty one starts a document. Ctrl-D or Ctrl-C ends.", file=screen)
    print("> ", end="", file=screen, flush=True)
    with suppress(KeyboardInterrupt):
        for line in lines:
            prompt = line.rstrip("\r\n")
            _one(sampler, prompt, asked[prompt], screen)
            asked[prompt] += 1
            print("> ", end="", file=screen, flush=True)
    print(file=screen)


def _one(sampler: Sampler, prompt: str, number: int, screen: IO[str]) -> Sampled:
    live = LiveText(sampler, screen)
    print(f"[{prompt}]", end="", file=screen, flush=True)
    sampled = sampler.one(prompt, number, live.watch)
    live.end(sampled)
    return sampled
