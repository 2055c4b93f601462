"""The digest by which ranks compare tensors; ranks that drift: tests/distributed."""

import pytest
import torch

from web2gpt.parallel import sanity
from web2gpt.parallel.sanity import digest


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_any_single_bit_changes_the_digest(dtype: torch.dtype) -> None:
    tensor = torch.randn(3, 5).to(dtype)
    width = torch.int32 if dtype == torch.float32 else torch.int16
    found = {int(digest(tensor))}
    for place in range(tensor.numel()):
        for bit in range(8 * tensor.element_size() - 1):
            changed = tensor.clone()
            changed.view(-1).view(width)[place] ^= 1 << bit
            found.add(int(digest(changed)))
    assert len(found) == 1 + tensor.numel() * (8 * tensor.element_size() - 1)


def test_values_that_change_places_change_the_digest() -> None:
    tensor = torch.randn(16)
    assert digest(tensor) != digest(tensor.flip(0))
    assert digest(torch.tensor([0.0])) != digest(torch.tensor([-0.0])), "bits, not values"


def test_a_tensor_taken_in_pieces_has_the_digest_of_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tensor = torch.randn(7, 9).t()  # not contiguous
    whole = digest(tensor)
    monkeypatch.setattr(sanity, "CHUNK", 8)
    assert digest(tensor) == whole
