"""The vocabulary-parallel loss on one rank, against torch's own; more ranks: tests/distributed."""

import pytest
import torch
import torch.nn.functional as F

from web2gpt.parallel.communication import TensorGroup
from web2gpt.parallel.cross_entropy import EAGER, Kernels, vocabulary_cross_entropy

ALONE = TensorGroup()


@pytest.mark.parametrize("kernels", [EAGER, Kernels(block=40)], ids=["one block", "blocks"])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_loss_and_gradient_are_torchs_and_padding_takes_no_part(
    scale: float, kernels: Kernels
) -> None:
    torch.manual_seed(0)
    logits = (torch.randn(2, 5, 16) * scale).requires_grad_()
    targets = torch.randint(0, 11, (2, 5))
    loss = vocabulary_cross_entropy(logits.clone(), targets, 11, ALONE, kernels)
    loss.backward()
    found = logits.grad
    logits.grad = None
    truth = F.cross_entropy(logits[..., :11].flatten(0, 1), targets.flatten())
    truth.backward()
    assert found is not None and logits.grad is not None
    torch.testing.assert_close(loss, truth)
    torch.testing.assert_close(found, logits.grad)
    assert not found[..., 11:].any()


def test_low_precision_logits_are_taken_to_float32() -> None:
    logits = torch.randn(3, 8, dtype=torch.bfloat16, requires_grad=True)
    targets = torch.tensor([1, 2, 3])
    loss = vocabulary_cross_entropy(logits.clone(), targets, 8, ALONE)
    loss.backward()
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, F.cross_entropy(logits.float(), targets))
    assert logits.grad is not None and logits.grad.dtype == torch.bfloat16
