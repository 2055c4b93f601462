"""Sampling on a CPU beside transformers' generate: tokens a second, batch 8, 128 new tokens.

Both draw from the same random weights with the same settings, in turns, so that a busy moment
falls on both; the ratio is the median of the rounds' own ratios. On a machine that others use, the
ratio of processor times (of one thread) says more than that of the clock: both are printed. Weights
do not change the work, as long as no text ends early, which both are told.

    python tests/benchmarks/sample.py [--sizes demo 124m] [--rounds 5] [--threads 1]
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

from web2gpt.checkpoint.huggingface import load_model
from web2gpt.config.outputs import SampleRun
from web2gpt.sample.drawable import Drawable
from web2gpt.sample.generate import Sampler
from web2gpt.sample.packed import pack

SIZES = {
    "demo": {
        "n_layer": 4, "n_embd": 128, "n_head": 4, "n_positions": 128, "vocab_size": 2048,
        "prompt": 1,  # with 128 new tokens, all that the window holds
    },
    "124m": {
        "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257,
        "prompt": 32,
    },
}  # fmt: skip
WAYS = {
    "greedy": {"temperature": 0.0},
    "drawn": {"temperature": 0.8, "top_k": 50, "top_p": 0.95},
}
BATCH, NEW = 8, 128


def main() -> None:
    """Print a table, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--rounds", type=int, default=5, help="turns; the median counts")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    logging.set_verbosity_error()
    results = {}
    print("model  way     ours tok/s  transformers tok/s  ratio (median)  of processor time  all")
    for name in given.sizes:
        for way, row in compare(name, given.ways, given.rounds):
            results[f"{name}/{way}"] = row
            ratios = " ".join(f"{ratio:.2f}" for ratio in row["ratios"])
            print(f"{name:6} {way:7} {row['ours']:10,.1f} {row['theirs']:19,.1f} "
                  f"{row['ratio']:15.2f} {row['processor_ratio']:18.2f}  {ratios}",
                  flush=True)  # fmt: skip
    print(json.dumps(results))


def compare(name: str, ways: list[str], rounds: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rates of both, in turns, for each way of drawing."""
    sizes = dict(SIZES[name])
    length = sizes.pop("prompt")
    torch.manual_seed(0)
    config = GPT2Config(**sizes, bos_token_id=0, eos_token_id=0, pad_token_id=0)
    theirs = GPT2LMHeadModel(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        words(sizes["vocab_size"]).save(str(Path(folder) / "tokenizer.json"))
        ours, stated = load_model(Path(folder))
        pack(ours)
        drawable = Drawable.of(
            Path(folder) / "tokenizer.json", stated.vocab_size, stated.end_of_text
        )
    prompts = torch.randint(1, sizes["vocab_size"], (BATCH, length))
    texts = [" ".join(f"w{number}" for number in row) for row in prompts.tolist()]
    for way in ways:
        rates: list[tuple[Rate, Rate]] = []
        for turn in range(rounds + 1):
            new = NEW if turn else 4  # the first warms up
            run = SampleRun(num_samples=1, max_new_tokens=new, min_new_tokens=new, **WAYS[way])
            sampler = Sampler(ours, stated.model, drawable, run)
            mine = rate(lambda sampler=sampler: sum(s.length for _, s in sampler.run(texts)))
            other = rate(lambda way=way, new=new: generate(theirs, prompts, new, WAYS[way]))
            rates += [(mine, other)] if turn else []
        clock = [mine.clock / other.clock for mine, other in rates]
        yield (
            way,
            {
                "ours": median(mine.clock for mine, _ in rates),
                "theirs": median(other.clock for _, other in rates),
                "ratio": median(clock),
                "processor_ratio": median(
                    mine.processor / other.processor for mine, other in rates
                ),
                "ratios": clock,
            },
        )


class Rate(NamedTuple):
    """Tokens a second, by the clock and of this process's processor time."""

    clock: float
    processor: float


def generate(
    model: GPT2LMHeadModel, prompts: torch.Tensor, new: int, settings: dict[str, Any]
) -> int:
    """transformers' way; gives the number of tokens drawn."""
    draw = {"do_sample": True, **settings} if settings["temperature"] else {"do_sample": False}
    out = model.generate(
        prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=new, min_new_tokens=new,
        **draw,
    )  # fmt: skip
    return out[:, prompts.shape[1] :].numel()


def rate(draw: Callable[[], int]) -> Rate:
    """Of one call, which gives the number of tokens drawn."""
    clock, processor = time.perf_counter(), time.process_time()
    tokens = draw()
    return Rate(tokens / (time.perf_counter() - clock), tokens / (time.process_time() - processor))


def words(vocab_size: int) -> Tokenizer:
    """A tokenizer of as many words: w1 w2 …, and end-of-text."""
    ids = {"<|endoftext|>": 0} | {f"w{number}": number for number in range(1, vocab_size)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<|endoftext|>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


if __name__ == "__main__":
    main()
