"""Accuracy on the last word of a passage: LAMBADA's task.

Source: Paperno et al. 2016, "The LAMBADA dataset". A word counts as found if each of its tokens is
the likeliest after what stands before it. The last token alone is what the old evaluation counted
without ``--strict-lambada``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from web2gpt.io.progress import ProgressLine
from web2gpt.model.gpt2 import GPT2


@dataclass(frozen=True)
class Passage:
    """``tokens`` of which the last ``answer`` are to be found."""

    tokens: list[int]
    answer: int


@dataclass(frozen=True)
class Found:
    """How many passages there were, and in how many all answer tokens were the likeliest."""

    passages: int
    found: int

    @property
    def accuracy(self) -> float:
        return self.found / self.passages


def last_word(text: str, tokenizer: Any) -> Passage:
    """The passage cut before its last word, which is tokenized by itself with a space before it.

    Raises ``ValueError`` if there are not two words.
    """
    words = text.rsplit(maxsplit=1)
    if len(words) < 2:
        raise ValueError("fewer than two words")
    before, word = words
    ids = list(tokenizer.encode(before, add_special_tokens=False).ids)
    answer = list(tokenizer.encode(f" {word}", add_special_tokens=False).ids)
    return Passage(ids + answer, len(answer))


def last_token(text: str, tokenizer: Any) -> Passage:
    """The passage with its last token as the answer."""
    ids = list(tokenizer.encode(text.strip(), add_special_tokens=False).ids)
    if len(ids) < 2:
        raise ValueError("fewer than two tokens")
    return Passage(ids, 1)


@torch.inference_mode()
def measure_cloze(
    model: GPT2, passages: Iterable[Passage], *, length: int, batch_size: int
) -> Found:
    """Count the passages whose answer is found, seeing at most ``length`` tokens before it."""
    count = found = 0
    with ProgressLine("evaluate", unit="passages") as progress:
        for batch in _batches(passages, batch_size):
            found += sum(_found(model, batch, length))
            count += len(batch)
            progress.advance(len(batch), note=f"accuracy {found / count:.3f}")
    if not count:
        raise ValueError("no passage in it")
    return Found(count, found)


def _found(model: GPT2, batch: list[Passage], length: int) -> Iterator[bool]:
    device = model.embedding.wte.weight.device
    rows = [passage.tokens[-length - 1 :] for passage in batch]
    longest = max(map(len, rows)) - 1
    # What stands right of a text is seen by nothing in it.
    inputs = [row[:-1] + [0] * (longest - len(row) + 1) for row in rows]
    hidden = model.hidden(torch.tensor(inputs, device=device))  # (B, T, C)
    for row, passage, states in zip(rows, batch, hidden, strict=True):
        answer = min(passage.answer, len(row) - 1)
        likeliest = model.head(states[len(row) - 1 - answer : len(row) - 1]).argmax(-1)
        yield likeliest.tolist() == row[-answer:]


def _batches(passages: Iterable[Passage], size: int) -> Iterator[list[Passage]]:
    remaining = iter(passages)
    while batch := list(islice(remaining, size)):
        yield batch
