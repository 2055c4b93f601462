"""Sampling against transformers' generate, and against each trap of the older generators."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from transformers import GPT2LMHeadModel

from web2gpt.checkpoint.open import ModelFiles
from web2gpt.config.outputs import SampleRun
from web2gpt.errors import ConfigError, InputError
from web2gpt.sample.cached import CachedGPT2
from web2gpt.sample.generate import Sampler
from web2gpt.sample.stage import sampler_of

PROMPTS = ["the cat", "s", "a hat and the other mat on the", "", "ñandú"]
WINDOW, IDS, PADDED = 32, 280, 288


def transformers_greedy(twin: Any, prompt: str, count: int, **options: Any) -> list[int]:
    ids = torch.tensor([twin.drawable.encode(prompt)])
    out = twin.theirs.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=count,
        do_sample=False,
        pad_token_id=0,
        **options,
    )
    new = out[0, ids.shape[1] :].tolist()
    return new[:-1] if new[-1] == 0 else new


def test_greedy_is_transformers_token_by_token(twin: Any) -> None:
    ours = twin.sample(PROMPTS, temperature=0, num_samples=1, max_new_tokens=15, min_new_tokens=0)
    for prompt, sampled in zip(PROMPTS, ours, strict=True):
        wanted = transformers_greedy(twin, prompt, 15)
        assert (sampled.prompt, sampled.length) == (prompt, len(wanted))
        assert sampled.text == twin.drawable.decode(wanted)


def test_repetition_penalty_is_transformers(twin: Any) -> None:
    ours = twin.sample(
        PROMPTS, temperature=0, num_samples=1, max_new_tokens=15, min_new_tokens=0,
        repetition_penalty=1.7,
    )  # fmt: skip
    for prompt, sampled in zip(PROMPTS, ours, strict=True):
        wanted = transformers_greedy(twin, prompt, 15, repetition_penalty=1.7)
        assert sampled.text == twin.drawable.decode(wanted)


def test_cached_logits_are_those_of_the_whole_context(twin: Any) -> None:
    contexts = [[5, 6, 7, 8, 9, 10], [11], [12, 13, 14]]
    cached = CachedGPT2(twin.ours, twin.stated.model, slots=3)
    with torch.no_grad():
        cached.prefill({slot: tokens[:-1] for slot, tokens in enumerate(contexts) if tokens[1:]})
        for new in (20, 21, 22):
            logits = cached.step([c[-1] for c in contexts], [len(c) - 1 for c in contexts])
            for row, context in zip(logits, contexts, strict=True):
                whole = twin.ours(torch.tensor([context]))[0, -1]
                torch.testing.assert_close(row[:IDS], whole[:IDS], atol=2e-5, rtol=1e-6)
                context.append(new)


def test_draws_follow_transformers_distribution(twin: Any) -> None:
    count, settings = 4000, {"temperature": 1.3, "top_k": 12, "top_p": 0.9}
    drawn = twin.sample(["the cat"], num_samples=count, max_new_tokens=1, batch_size=500,
                        min_new_tokens=1, **settings)  # fmt: skip
    ids = torch.tensor([twin.drawable.encode("the cat")])
    out = twin.theirs.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=1, do_sample=True, pad_token_id=0,
        min_new_tokens=1, output_scores=True, return_dict_in_generate=True, **settings,
    )  # fmt: skip
    chances = torch.softmax(out.scores[0][0].double(), -1)
    expected = Counter()
    for number in chances.nonzero().flatten().tolist():
        expected[twin.drawable.decode([number])] += count * chances[number].item()
    found = Counter(sampled.text for sampled in drawn)
    assert set(found) <= set(expected)
    order = sorted(expected)
    observed = np.array([found[text] for text in order])
    assert stats.chisquare(observed, [expected[text] for text in order]).pvalue > 0.001


def test_text_depends_on_seed_prompt_and_number_alone(twin: Any) -> None:
    options = {"num_samples": 3, "max_new_tokens": 40, "temperature": 1.5, "seed": 7}
    wanted = {(s.prompt, s.text) for s in twin.sample(PROMPTS, batch_size=1, **options)}
    assert len(wanted) > len(PROMPTS)
    for size in (3, 50):
        for prompts in (PROMPTS, PROMPTS[::-1], [*PROMPTS, "one more"]):
            again = {(s.prompt, s.text) for s in twin.sample(prompts, batch_size=size, **options)}
            assert wanted <= again
    other = {(s.prompt, s.text) for s in twin.sample(PROMPTS, **options | {"seed": 8})}
    assert not wanted & other


def test_runs_of_one_sampler_do_not_disturb_each_other(twin: Any) -> None:
    settings = SampleRun(num_samples=2, max_new_tokens=12, batch_size=3)
    sampler = Sampler(twin.ours, twin.stated.model, twin.drawable, settings)
    alone = dict(sampler.run(PROMPTS))
    assert dict(sampler.run(PROMPTS)) == alone  # in the same cache
    one, other = sampler.run(PROMPTS), sampler.run(PROMPTS)
    pairs = list(zip(one, other, strict=True))
    assert dict(mine for mine, _ in pairs) == dict(other for _, other in pairs) == alone


def test_bf16_draws_what_a_bf16_model_would(make_twin: Callable[..., Any]) -> None:
    twin = make_twin()
    opened = ModelFiles(twin.folder).open()
    settings = SampleRun(precision="bf16", temperature=0, num_samples=1, max_new_tokens=1)
    ((_, sampled),) = sampler_of(opened, settings).run(["the cat"])
    ids = torch.tensor([twin.drawable.encode("the cat")])
    logits = twin.theirs.to(torch.bfloat16)(ids).logits[0, -1, :IDS]
    chosen = logits[twin.drawable.encode(sampled.text)[0]] if sampled.text else logits[0]
    assert logits.max() - chosen <= logits.max().abs() * 2**-7


def test_a_full_window_keeps_its_last_half(twin: Any) -> None:
    prompts = ["the cat", "a hat and the other mat on the"]
    ours = twin.sample(prompts, temperature=0, num_samples=1, max_new_tokens=70)
    for prompt, sampled in zip(prompts, ours, strict=True):
        context, drawn = twin.drawable.encode(prompt), []
        while len(drawn) < 70:
            with torch.no_grad():
                logits = twin.ours(torch.tensor([context]))[0, -1, :IDS]
            logits[0] = -torch.inf if not drawn else logits[0]
            token = int(logits.argmax())
            if token == 0:
                break
            drawn.append(token)
            context.append(token)
            context = context[-WINDOW // 2 :] if len(context) > WINDOW else context
        assert sampled.text == twin.drawable.decode(drawn)
        assert sampled.length == len(drawn)


def test_a_prompt_beyond_the_window_is_seen_by_its_end(twin: Any) -> None:
    long = "the other cat " * 40
    tail = twin.drawable.encode(long)[-WINDOW:]
    first = twin.sample([long], temperature=0, num_samples=1, max_new_tokens=1)[0]
    with torch.no_grad():
        wanted = twin.ours(torch.tensor([tail]))[0, -1, 1:IDS].argmax() + 1
    assert first.prompt == long
    assert first.text == twin.drawable.decode([int(wanted)])


def test_end_of_text_within_a_prompt_ends_nothing(twin: Any) -> None:
    prompt = "the mat<|endoftext|>the cat"
    assert 0 in twin.drawable.encode(prompt)
    (sampled,) = twin.sample([prompt], temperature=0, num_samples=1, max_new_tokens=9)
    assert sampled.length > 0
    assert sampled.text == twin.drawable.decode(
        transformers_greedy(twin, prompt, 9, min_new_tokens=1)
    )


def constant(token_logits: dict[int, float]) -> Callable[[GPT2LMHeadModel], None]:
    """Make a model whose logits are these for every context, and 0 for all other ids."""

    def edit(theirs: GPT2LMHeadModel) -> None:
        theirs.transformer.ln_f.weight.zero_()
        theirs.transformer.ln_f.bias.zero_()
        theirs.transformer.ln_f.bias[0] = 1.0
        theirs.transformer.wte.weight[:, 0] = 0.0
        for token, logit in token_logits.items():
            theirs.transformer.wte.weight[token, 0] = logit

    return edit


def test_ids_without_a_token_are_never_drawn(make_twin: Callable[..., Any]) -> None:
    padded = make_twin(constant(dict.fromkeys(range(IDS, PADDED), 30.0)))
    for options in ({"temperature": 0}, {"temperature": 2.0, "top_k": 0, "top_p": 1.0}):
        for sampled in padded.sample(["the"], num_samples=20, max_new_tokens=20, **options):
            assert 0 < sampled.length <= 20
            assert sampled.text


def test_a_model_that_computes_no_numbers_is_refused(make_twin: Callable[..., Any]) -> None:
    broken = make_twin(lambda theirs: theirs.transformer.ln_f.bias.fill_(torch.nan))
    with pytest.raises(InputError, match="logits are not finite"):
        broken.sample(["the"])


def test_an_empty_stop_string_is_refused(twin: Any) -> None:
    with pytest.raises(ConfigError, match=r"sample\.stop"):
        twin.sample(["the"], stop=("cat", ""))


def test_a_text_does_not_end_before_there_is_something_to_read(
    make_twin: Callable[..., Any],
) -> None:
    ends = make_twin(constant({0: 8.0}))
    settings = {"num_samples": 40, "max_new_tokens": 50, "temperature": 1.0, "top_k": 0}
    for sampled in ends.sample(["the"], **settings):
        assert sampled.text.strip() and sampled.finished
    for sampled in ends.sample(["the"], min_new_tokens=5, **settings):
        assert sampled.length >= 5
    assert any(
        s.text == "" and s.finished for s in ends.sample(["a"], min_new_tokens=0, **settings)
    )


def test_a_stop_string_ends_its_text_and_is_cut_off(twin: Any) -> None:
    (free,) = twin.sample(["stop the cat"], temperature=0, num_samples=1, max_new_tokens=20)
    stop = free.text[6:9]
    (cut,) = twin.sample(
        ["stop the cat"], temperature=0, num_samples=1, max_new_tokens=20, stop=(stop, "never")
    )
    assert cut.text == free.text[: free.text.index(stop)]
    assert cut.finished and 0 < cut.length < free.length


def test_unfinished_texts_say_so(make_twin: Callable[..., Any]) -> None:
    endless = make_twin(constant({0: -1000.0}))
    (sampled,) = endless.sample(["the"], num_samples=1, max_new_tokens=9)
    assert (sampled.length, sampled.finished) == (9, False)
