"""Loss, perplexity and bits per byte of a model on a stream of tokens.

Every token but the first is predicted once. Losses are computed in float32 and summed in float64,
so that neither the size of a batch nor a layout shows in the result. The entropy of the unigram
distribution of the same tokens is the loss of the best model without context: what a model must
beat to have learnt anything from it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import exp, isfinite, log

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from web2gpt.evaluate.windows import Array, Window, batches, windows
from web2gpt.io.progress import ProgressLine
from web2gpt.model.gpt2 import GPT2


@dataclass(frozen=True)
class Measured:
    """Sums over a stream; ``counts`` [V] are all its tokens, ``first`` the one not predicted."""

    loss: float  # nats, summed over the predicted tokens
    predicted: int
    counts: Array
    first: int

    @property
    def mean_loss(self) -> float:
        """Nats a token."""
        return self.loss / self.predicted

    @property
    def perplexity(self) -> float:
        return exp(self.mean_loss) if self.mean_loss < 700 else float("inf")

    @property
    def unigram_entropy(self) -> float:
        """Nats a token: -sum p log p over the tokens' own frequencies."""
        p = self.counts[self.counts > 0] / self.counts.sum()
        return float(-(p * np.log(p)).sum())

    def text_bytes(self, token_bytes: Array) -> int:
        """UTF-8 bytes of the predicted tokens, given those of each id [V]."""
        return int(self.counts @ token_bytes - token_bytes[self.first])

    def bits_per_byte(self, token_bytes: Array) -> float:
        """Comparable between tokenizers, as the loss a token is not."""
        return self.loss / log(2) / self.text_bytes(token_bytes)


class _Counted:
    """A stream's pieces as they pass, counted."""

    def __init__(self, pieces: Iterable[Array], vocab_size: int):
        self._pieces = pieces
        self.counts = np.zeros(vocab_size, np.int64)
        self.first: int | None = None

    def __iter__(self) -> Iterator[Array]:
        for piece in self._pieces:
            if self.first is None and len(piece):
                self.first = int(piece[0])
            counts = np.bincount(piece, minlength=len(self.counts))
            if len(counts) > len(self.counts):
                raise ValueError(f"the id {len(counts) - 1} is beyond the model's vocabulary")
            self.counts += counts
            yield piece


@torch.inference_mode()
def measure(
    model: GPT2,
    pieces: Iterable[Array],
    *,
    length: int,
    batch_size: int,
    stride: int | None = None,
    total: int | None = None,
) -> Measured:
    """Score the documents ``pieces``, joined, in windows of ``length`` inputs.

    ``stride`` below ``length`` gives each token at least ``length - stride`` tokens of context,
    but for the first window. ``total`` (tokens) is for the progress line. Raises ``ValueError`` if
    there are fewer than two tokens, ids that the model does not have, or no finite loss.
    """
    counted = _Counted(pieces, model.embedding.wte.num_embeddings)
    loss, predicted = 0.0, 0
    with ProgressLine("evaluate", unit="tokens", total=total) as progress:
        for batch in batches(windows(counted, length, stride), batch_size):
            loss += _batch_loss(model, batch)
            scored = sum(len(window.tokens) - 1 - window.skip for window in batch)
            predicted += scored
            progress.advance(scored, note=f"loss {loss / predicted:.3f}")
    if counted.first is None or not predicted:
        raise ValueError("fewer than two tokens: nothing to predict")
    if not isfinite(loss):
        raise ValueError("the loss is not finite: the model's weights hold NaN or infinity")
    return Measured(loss, predicted, counted.counts, counted.first)


def _batch_loss(model: GPT2, batch: list[Window]) -> float:
    device = model.embedding.wte.weight.device
    tokens = torch.from_numpy(np.stack([window.tokens for window in batch])).to(device)
    hidden = model.hidden(tokens[:, :-1])  # (B, T, C)
    rows = zip(hidden, tokens[:, 1:], batch, strict=True)  # one at a time: logits are large
    return sum(_row_loss(model, x, y, window.skip) for x, y, window in rows)


def _row_loss(model: GPT2, hidden: Tensor, targets: Tensor, skip: int) -> float:
    """Summed loss of one window: (T, C), (T,)."""
    logits = model.head(hidden[skip:]).float()
    return F.cross_entropy(logits, targets[skip:], reduction="none").double().sum().item()
