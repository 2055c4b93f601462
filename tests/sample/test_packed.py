"""Matrices in block order compute what they computed before."""

from typing import Any

import pytest
import torch

from web2gpt.checkpoint.huggingface import load_model
from web2gpt.config.outputs import SampleRun
from web2gpt.sample import packed
from web2gpt.sample.generate import Sampler
from web2gpt.sample.packed import PackedLinear, TurnedLinear, pack, packs, projection

PROMPTS = ["the cat", "s", "a hat and the other mat on the"]


def texts(twin: Any, model: Any, **settings: Any) -> list[str]:
    sampler = Sampler(model, twin.stated.model, twin.drawable, SampleRun(**settings))
    return [sampled.text for _, sampled in sorted(sampler.run(PROMPTS), key=lambda pair: pair[0])]


@pytest.mark.parametrize(("large", "kind"), [(1, PackedLinear), (1 << 18, TurnedLinear)])
def test_a_packed_model_gives_the_same_logits_and_texts(
    twin: Any, monkeypatch: pytest.MonkeyPatch, large: int, kind: type
) -> None:
    monkeypatch.setattr(packed, "LARGE", large)
    model = pack(load_model(twin.folder)[0])
    assert sum(isinstance(module, kind) for module in model.modules()) == 8
    tokens = torch.arange(1, 30)[None]
    with torch.inference_mode():
        logits = projection(model)(model.head.ln_f(model.hidden(tokens)))
        torch.testing.assert_close(logits, twin.ours(tokens), atol=2e-5, rtol=1e-5)
    settings = {"temperature": 1.3, "num_samples": 4, "max_new_tokens": 30}
    wanted = texts(twin, twin.ours, **settings)
    for batch_size in (1, 3, 12):
        assert texts(twin, model, batch_size=batch_size, **settings) == wanted


def test_where_nothing_can_be_packed_the_layers_stay(
    twin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not packs(torch.zeros(4, 4, dtype=torch.bfloat16))
    assert not packs(torch.zeros(4, 4, device="meta"))
    monkeypatch.setattr(packed, "packs", lambda weight: False)
    model = pack(load_model(twin.folder)[0])
    kinds = PackedLinear | TurnedLinear
    assert not any(isinstance(module, kinds) for module in model.modules())
    settings = {"temperature": 0.0, "num_samples": 1, "max_new_tokens": 8}
    assert texts(twin, model, **settings) == texts(twin, twin.ours, **settings)


@pytest.mark.parametrize("rows", [1, 2, 7, 8, 40])
def test_any_number_of_rows_is_computed(rows: int) -> None:
    torch.manual_seed(0)
    weight, bias, x = torch.randn(33, 20), torch.randn(33), torch.randn(rows, 3, 20)
    for kind in (PackedLinear, TurnedLinear):
        found = kind(weight, bias)(x)
        torch.testing.assert_close(found, torch.nn.functional.linear(x, weight, bias))
