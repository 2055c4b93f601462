"""Cross-entropy over a vocabulary that is split over tensor-parallel ranks.

Each rank has the logits of its own rows only. The softmax's normalizer is found from three numbers
a token (largest logit, sum of exponentials, target's logit), so that no rank ever holds the whole
vocabulary's logits. Padding columns take no part in normalizer or gradient, and theirs is 0.

Everything is computed in float32, but nothing in float32 is as large as the logits: they are gone
through in blocks of rows, and in the backward pass their gradient takes their place, in their own
type. That is 6 bytes of traffic a logit in 16 bits where both ``Kernels`` are compiled, each into
one pass.

With p = softmax(z), loss = log sum exp(z) - z[target], and d loss / d z = p - onehot(target).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from web2gpt.parallel.communication import TensorGroup, all_max, all_sum

EAGER_BLOCK = 1 << 24  # logits at a time: 64 MB of float32 for each intermediate result
RUN = 128  # logits; fewer, and slower, where model.vocab_multiple is less
LOWEST = torch.finfo(torch.float32).min
# 256 MB in 16 bits: enough to fill a GPU, and Triton copies one block to choose its settings by.
COMPILED_BLOCK = 1 << 27


def row_statistics(z: Tensor, column: Tensor, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of each row of logits: the largest, the sum of exponentials, the target's logit; the last
    two relative to the largest: (n, V/t), (n) -> (n), (n), (n), float32.

    ``column``: of the target, -1 if another rank has it (its logit is 0 then); those at and beyond
    ``columns`` are padding. A row is taken in runs, each short enough for a compiled kernel to read
    it once and find both, the largest and the sum.
    """
    x = z.float()
    if columns < z.size(-1):
        x = x.where(torch.arange(z.size(-1), device=z.device) < columns, LOWEST)
    x = x.reshape(z.size(0), -1, math.gcd(z.size(-1), RUN))  # (n, runs, RUN)
    tops = x.amax(dim=-1)  # (n, runs)
    totals = (x - tops.unsqueeze(-1)).exp().sum(dim=-1)
    largest = tops.amax(dim=-1)
    total = (totals * (tops - largest.unsqueeze(-1)).exp()).sum(dim=-1)
    target = z.gather(-1, column.clamp(min=0).unsqueeze(-1)).squeeze(-1).float() - largest
    return largest, total, target.where(column >= 0, 0.0)


def gradient_in_place(
    z: Tensor, column: Tensor, columns: int, normalizer: Tensor, scale: Tensor
) -> None:
    """Put (exp(z - normalizer) - onehot(column)) scale in the place of ``z``: (n, V/t), (n)."""
    number = torch.arange(z.size(-1), device=z.device)  # (V/t)
    p = (z.float() - normalizer.unsqueeze(-1)).exp()
    p = (p - (number == column.unsqueeze(-1)).float()) * scale.unsqueeze(-1)
    z.copy_(p.where(number < columns, 0.0))


@dataclass(frozen=True)
class Kernels:
    """The two passes over the logits, as above or compiled, and the logits of a block."""

    statistics: Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor, Tensor]] = row_statistics
    gradient: Callable[[Tensor, Tensor, int, Tensor, Tensor], None] = gradient_in_place
    block: int = EAGER_BLOCK

    def rows(self, width: int) -> int:
        """Rows of a block: a power of two, so that blocks are alike."""
        return 1 << (max(1, self.block // width).bit_length() - 1)


EAGER = Kernels()


def vocabulary_cross_entropy(
    logits: Tensor, targets: Tensor, vocab_size: int, group: TensorGroup, kernels: Kernels = EAGER
) -> Tensor:
    """Mean loss in nats a token, float32: (..., V/t), (...) -> ().

    ``vocab_size`` is the true size: a rank's columns at and beyond it are padding. The logits are
    overwritten in the backward pass.
    """
    losses: Tensor = _CrossEntropy.apply(  # type: ignore[no-untyped-call]  # torch's
        logits.flatten(0, -2), targets.flatten(), vocab_size, group, kernels
    )
    return losses.mean()


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(  # noqa: PLR0917 - autograd hands arguments on by position
        context: Any,
        logits: Tensor,
        targets: Tensor,
        vocab_size: int,
        group: TensorGroup,
        kernels: Kernels,
    ) -> Tensor:  # (N, V/t), (N) -> (N)
        width = logits.size(-1)
        start = group.rank * width
        columns = min(max(vocab_size - start, 0), width)
        here = (targets >= start) & (targets < start + width)  # (N)
        column = (targets - start).where(here, -1)  # (N)
        own, total, target = _statistics(logits, column, columns, kernels)  # (N) each

        largest = all_max(own.clone(), group)
        away = own - largest  # 0 on the rank that has the largest, -inf where all is padding
        sums = torch.stack([total * away.exp(), (target + away).where(here, 0.0)])
        total, target = all_sum(sums, group)  # (2, N)

        context.save_for_backward(logits, column, largest + total.log())
        context.columns, context.kernels = columns, kernels
        losses: Tensor = total.log() - target
        return losses

    @staticmethod
    def backward(
        context: Any, *gradients: Tensor
    ) -> tuple[Tensor, None, None, None, None]:  # (N) -> (N, V/t)
        logits, column, normalizer = context.saved_tensors
        rows = context.kernels.rows(logits.size(-1))
        scale = gradients[0].float().contiguous()
        parts = (torch.split(x, rows) for x in (logits, column, normalizer, scale))
        for z, own_column, own_normalizer, own_scale in zip(*parts, strict=True):
            context.kernels.gradient(z, own_column, context.columns, own_normalizer, own_scale)
        return logits, None, None, None, None


def _statistics(
    logits: Tensor, column: Tensor, columns: int, kernels: Kernels
) -> tuple[Tensor, Tensor, Tensor]:
    """``row_statistics`` of all rows, block by block."""
    if columns == 0:
        nothing = torch.zeros_like(column, dtype=torch.float32)
        return nothing - torch.inf, nothing, nothing
    rows = kernels.rows(logits.size(-1))
    blocks = zip(torch.split(logits, rows), torch.split(column, rows), strict=True)
    found = [kernels.statistics(z, own, columns) for z, own in blocks]
    largest, total, target = (torch.cat(parts) for parts in zip(*found, strict=True))
    return largest, total, target
