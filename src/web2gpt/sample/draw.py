"""The next token from its logits, and where its random numbers come from.

Order, as the settings stand: repetition penalty (Keskar et al. 2019, CTRL), temperature, top-k
(Fan et al. 2018), top-p (Holtzman et al. 2020); the same as transformers' ``generate``. Invariant:
a draw depends on the text's own logits and its own random number, never on its neighbours in the
batch.
"""

from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

from web2gpt.config.outputs import Sample


def random_stream(seed: int, prompt: str, sample: int) -> np.random.Generator:
    """One uniform number a position, for the sample of this number after this prompt.

    The stream is a function of these three alone, so that neither the order of the prompts nor
    the size of a batch changes a text.
    """
    digest = blake2b(f"{seed}\0{sample}\0{prompt}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


def penalize(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Make tokens that were there before (``seen``, bool (B, V)) less likely."""
    lowered = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, lowered, logits)


def choose(logits: Tensor, uniform: Tensor, settings: Sample) -> Tensor:
    """Token ids (B,) from logits (B, V) by one number in [0, 1) a text: the inverse of the
    cumulative distribution, tokens from likeliest to least. A logit of -inf is never chosen.
    """
    if settings.temperature == 0:
        return logits.argmax(-1)
    k = min(settings.top_k or logits.size(-1), logits.size(-1))
    values, ids = logits.topk(k)  # (B, k), largest first
    chance = torch.softmax(values.double() / settings.temperature, dim=-1)
    upto = chance.cumsum(-1)
    if settings.top_p < 1:
        chance = chance.where(upto - chance < settings.top_p, 0.0)  # the first always stays
        upto = chance.cumsum(-1)
    target = uniform[:, None].to(upto) * upto[:, -1:]
    place = torch.searchsorted(upto, target, right=True)  # the first whose sum passes the target
    last = (chance > 0).sum(-1, keepdim=True) - 1
    return ids.gather(1, place.minimum(last))[:, 0]
