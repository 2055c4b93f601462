"""Cross-entropy over a vocabulary that is split over tensor-parallel ranks.

Each rank has the logits of its own rows only. The softmax's normalizer is found from three numbers
a token (largest logit, sum of exponentials, target's logit), so that no rank ever holds the whole
vocabulary's logits. Padding rows are masked to -inf: they take no part in normalizer or gradient.
Everything is float32, whatever the logits are.

With p = softmax(z), loss = log sum exp(z) - z[target], and d loss / d z = p - onehot(target).
"""

from typing import Any

import torch
from torch import Tensor

from web2gpt.parallel.communication import TensorGroup, all_max, all_sum


def vocabulary_cross_entropy(
    logits: Tensor, targets: Tensor, vocab_size: int, group: TensorGroup
) -> Tensor:
    """Mean loss in nats a token, float32: (..., V/t), (...) -> ().

    ``vocab_size`` is the true size: a rank's columns at and beyond it are padding.
    """
    losses: Tensor = _CrossEntropy.apply(  # type: ignore[no-untyped-call]  # torch's
        logits.flatten(0, -2), targets.flatten(), vocab_size, group
    )
    return losses.mean()


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, logits: Tensor, targets: Tensor, vocab_size: int, group: TensorGroup
    ) -> Tensor:  # (N, V/t), (N) -> (N)
        width = logits.size(-1)
        start = group.rank * width
        z = logits.float() if logits.dtype != torch.float32 else logits.clone()  # (N, V/t)
        z[:, max(0, vocab_size - start) :] = float("-inf")
        largest = all_max(z.amax(dim=-1), group)  # (N)
        z -= largest.unsqueeze(-1)

        here = (targets >= start) & (targets < start + width)  # (N)
        column = (targets - start).where(here, 0).unsqueeze(-1)  # (N, 1)
        target = z.gather(-1, column).squeeze(-1).where(here, 0.0)  # (N)

        p = z.exp_()
        total_and_target = all_sum(torch.stack([p.sum(dim=-1), target]), group)  # (2, N)
        total, target = total_and_target
        p /= total.unsqueeze(-1)

        context.save_for_backward(p, column, here)
        context.dtype = logits.dtype
        losses: Tensor = total.log() - target
        return losses

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        p, column, here = context.saved_tensors
        gradient = p * gradients[0].unsqueeze(-1)  # (N, V/t)
        gradient.scatter_add_(-1, column, -(gradients[0] * here).unsqueeze(-1))
        return gradient.to(context.dtype), None, None, None
