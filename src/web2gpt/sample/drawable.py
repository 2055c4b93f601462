"""Which token ids can be drawn, and what they are to a text.

A model's vocabulary can be larger than its tokenizer's (padding rows, in models from elsewhere):
ids that the tokenizer has no token for are never drawn.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from web2gpt.errors import InputError
from web2gpt.tokens.vocabulary import END_OF_TEXT, parse_tokenizer


@dataclass(frozen=True)
class Drawable:
    """``allowed`` and ``blank`` are bool (V): ids that have a token, and those that a reader would
    not see. ``end_of_text`` ends a text and starts one that has no prompt.
    """

    tokenizer: Any
    allowed: Tensor
    blank: Tensor
    end_of_text: int

    @classmethod
    def of(cls, path: Path, vocab_size: int, end_of_text: int | None) -> Self:
        """From a model's tokenizer.json. Raises ``InputError`` if they do not fit."""
        if not path.is_file():
            raise InputError(f"{path}: no such file; put the model's tokenizer there.")
        tokenizer = parse_tokenizer(path.read_bytes(), path)
        tokenizer.encode_special_tokens = False  # a prompt may hold <|endoftext|> as itself
        ids = tokenizer.get_vocab(with_added_tokens=True)
        end = ids.get(END_OF_TEXT) if end_of_text is None else end_of_text
        highest = max(ids.values(), default=-1)
        if highest >= vocab_size or end not in ids.values():
            raise InputError(
                f"{path}: ids up to {highest}, end-of-text {end}, do not fit the model's "
                f"vocabulary of {vocab_size}; give the tokenizer that the model was trained with."
            )
        allowed = torch.zeros(vocab_size, dtype=torch.bool)
        blank = torch.zeros(vocab_size, dtype=torch.bool)
        for number in ids.values():
            allowed[number] = True
            blank[number] = not tokenizer.decode([number]).strip()
        return cls(tokenizer, allowed, blank, end)

    def encode(self, prompt: str) -> list[int]:
        """The ids of a prompt; end-of-text for an empty one."""
        ids = self.tokenizer.encode(prompt, add_special_tokens=False).ids
        return list(ids) or [self.end_of_text]

    def decode(self, ids: list[int]) -> str:
        """The text of drawn ids."""
        return str(self.tokenizer.decode(ids))
