"""How many bytes of text each token id stands for."""

from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import pre_tokenizers


def token_bytes(tokenizer: Any, vocab_size: int) -> npt.NDArray[np.int64] | None:
    """Bytes [V] of each id; 0 for special tokens and ids without one.

    Byte-level BPE writes a token with one character a byte, so its length is the answer. None for
    tokenizers of another kind, whose tokens do not say.
    """
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    added = tokenizer.get_added_tokens_decoder()
    lengths = np.zeros(vocab_size, np.int64)
    for token, number in tokenizer.get_vocab(with_added_tokens=True).items():
        if number in added:
            lengths[number] = 0 if added[number].special else len(token.encode())
        elif alphabet.issuperset(token):
            lengths[number] = len(token)
        else:
            return None
    return lengths
