"""One draw, against transformers' own filters."""

import pytest
import torch
from transformers import (
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from web2gpt.config.outputs import Sample
from web2gpt.sample.draw import choose, penalize, random_stream

STEPS = 20_000


def transformers_chances(
    logits: torch.Tensor, temperature: float, top_k: int, top_p: float
) -> torch.Tensor:
    filters = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k:
        filters.append(TopKLogitsWarper(top_k))
    if top_p < 1:
        filters.append(TopPLogitsWarper(top_p))
    return torch.softmax(filters(torch.zeros(1, 1, dtype=torch.long), logits[None])[0].double(), -1)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("top_k", [0, 1, 5, 100])
@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.3, 0.01])
def test_shares_of_the_unit_interval_are_transformers_chances(
    temperature: float, top_k: int, top_p: float
) -> None:
    torch.manual_seed(0)
    logits = torch.randn(40) * 2
    settings = Sample(temperature=temperature, top_k=top_k, top_p=top_p)
    uniform = (torch.arange(STEPS, dtype=torch.float64) + 0.5) / STEPS
    drawn = choose(logits.expand(STEPS, -1), uniform, settings)
    shares = torch.bincount(drawn, minlength=40) / STEPS
    wanted = transformers_chances(logits, temperature, top_k, top_p)
    torch.testing.assert_close(shares.double(), wanted, atol=1.5 / STEPS, rtol=0)
    assert not shares[wanted == 0].any()


def test_an_impossible_logit_is_never_chosen_even_at_the_ends_of_the_interval() -> None:
    logits = torch.full((2, 6), -torch.inf)
    logits[:, 2:4] = 0.0
    uniform = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    for settings in (Sample(temperature=1.0, top_k=0, top_p=1.0), Sample(temperature=0)):
        assert set(choose(logits, uniform, settings).tolist()) <= {2, 3}


def test_greedy_is_the_likeliest() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0], [5.0, 1.0, 4.9]])
    uniform = torch.tensor([0.99, 0.99], dtype=torch.float64)
    assert choose(logits, uniform, Sample(temperature=0)).tolist() == [1, 0]


def test_repetition_penalty_is_transformers() -> None:
    torch.manual_seed(1)
    logits = torch.randn(2, 9)
    before = torch.tensor([[1, 4, 4], [0, 8, 3]])
    seen = torch.zeros(2, 9, dtype=torch.bool).scatter(1, before, value=True)
    wanted = RepetitionPenaltyLogitsProcessor(1.4)(before, logits.clone())
    torch.testing.assert_close(penalize(logits, seen, 1.4), wanted)


def test_streams_differ_by_seed_prompt_and_number() -> None:
    keys = [(1, "a", 0), (2, "a", 0), (1, "b", 0), (1, "a", 1), (1, "", 0), (11, "a", 0)]
    firsts = [random_stream(*key).random() for key in keys]
    assert len(set(firsts)) == len(keys)
    assert random_stream(1, "a", 0).random() == firsts[0]
