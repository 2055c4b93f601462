"""Sampling beside transformers' generate: tokens a second, by default batch 8, 128 new tokens.

Both draw from the same random weights with the same settings, in turns, so that a busy moment
falls on both; the ratio is the median of the rounds' own ratios. On a machine that others use, the
ratio of processor times (of one thread) says more than that of the clock: both are printed. Weights
do not change the work, as long as no text ends early, which both are told.

    python tests/benchmarks/sample.py [--sizes demo 124m] [--rounds 5] [--threads 1]
    python tests/benchmarks/sample.py --device cuda --precision bf16 --sizes 345m --ways greedy \
        --batches 1 64 --new 256

Greedy texts are compared too. In bf16 they part where roundings swap two tokens. How far apart the
two are is judged by the same weights in float32, as either side's logits hold its own roundings.
How far transformers parts from itself, when it reads its texts as a whole, stands beside it.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from copy import deepcopy
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

from web2gpt.checkpoint.open import ModelFiles
from web2gpt.config.outputs import SampleRun
from web2gpt.sample.drawable import Drawable
from web2gpt.sample.generate import Sampler
from web2gpt.sample.packed import pack
from web2gpt.sample.stage import PRECISIONS

SIZES = {
    "demo": {
        "n_layer": 4, "n_embd": 128, "n_head": 4, "n_positions": 128, "vocab_size": 2048,
        "prompt": 1,  # with 128 new tokens, all that the window holds
    },
    "124m": {
        "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257,
        "prompt": 32,
    },
    "345m": {
        "n_layer": 24, "n_embd": 1024, "n_head": 16, "n_positions": 1024, "vocab_size": 50257,
        "prompt": 32,
    },
}  # fmt: skip
WAYS = {
    "greedy": {"temperature": 0.0},
    "drawn": {"temperature": 0.8, "top_k": 50, "top_p": 0.95},
}
BF16_BITS = 7  # of the fraction


def main() -> None:
    """Print a table, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["demo", "124m"], choices=list(SIZES))
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--batches", nargs="+", type=int, default=[8])
    parser.add_argument("--new", type=int, default=128, help="tokens after the prompt")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--precision", default="fp32", choices=list(PRECISIONS))
    parser.add_argument("--rounds", type=int, default=5, help="turns; the median counts")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    logging.set_verbosity_error()
    results = {}
    print(
        "model batch way     ours tok/s  transformers tok/s  ratio (median)  of processor time  all"
    )
    for name in given.sizes:
        pair = Pair(name, given)
        for batch, way in product(given.batches, given.ways):
            row = results[f"{name}/{batch}/{way}"] = pair.compare(batch, way)
            ratios = " ".join(f"{ratio:.2f}" for ratio in row["ratios"])
            print(f"{name:5} {batch:5} {way:7} {row['ours']:10,.1f} {row['theirs']:19,.1f} "
                  f"{row['ratio']:15.2f} {row['processor_ratio']:18.2f}  {ratios}"
                  f"  {row['greedy']}", flush=True)  # fmt: skip
    print(json.dumps(results))


class Pair:
    """The same random model in both."""

    def __init__(self, name: str, given: argparse.Namespace):
        sizes = dict(SIZES[name])
        self.given, self.length, self.vocab_size = given, sizes.pop("prompt"), sizes["vocab_size"]
        torch.manual_seed(0)
        config = GPT2Config(**sizes, bos_token_id=0, eos_token_id=0, pad_token_id=0)
        self.theirs = GPT2LMHeadModel(config).eval()
        with tempfile.TemporaryDirectory() as folder:
            self.theirs.save_pretrained(folder)
            words(self.vocab_size).save(str(Path(folder) / "tokenizer.json"))
            self.opened = ModelFiles(Path(folder)).open(given.device)
            self.drawable = Drawable.of(
                Path(folder) / "tokenizer.json", self.opened.vocab_size, self.opened.end_of_text
            )
        dtype = PRECISIONS[given.precision]
        self.ours = pack(self.opened.gpt2.to(dtype))
        self.theirs = self.theirs.to(given.device, dtype)

    def compare(self, batch: int, way: str) -> dict[str, Any]:
        """Rates of both, in turns."""
        given = self.given
        prompts = torch.randint(1, self.vocab_size, (batch, self.length))
        texts = [" ".join(f"w{number}" for number in row) for row in prompts.tolist()]
        rates: list[tuple[Rate, Rate]] = []
        for turn in range(given.rounds + 1):
            new = given.new if turn else 4  # the first warms up
            run = SampleRun(
                num_samples=1, batch_size=batch, max_new_tokens=new, min_new_tokens=new, **WAYS[way]
            )
            sampler = Sampler(self.ours, self.opened.model, self.drawable, run)
            mine, found = rate(lambda sampler=sampler: dict(sampler.run(texts)))
            other, wanted = rate(lambda new=new: generate(self.theirs, prompts, new, WAYS[way]))
            tokens = batch * new
            rates += [(mine.of(tokens), other.of(tokens))] if turn else []
        clock = [mine.clock / other.clock for mine, other in rates]
        drawn = [[int(word[1:]) for word in found[row].text.split()] for row in range(batch)]
        ours = torch.tensor(drawn)  # (B, N)
        return {
            "ours": median(mine.clock for mine, _ in rates),
            "theirs": median(other.clock for _, other in rates),
            "ratio": median(clock),
            "processor_ratio": median(mine.processor / other.processor for mine, other in rates),
            "ratios": clock,
            "greedy": "" if WAYS[way]["temperature"] else self.greedy(prompts, ours, wanted),
        }

    @torch.inference_mode()
    def greedy(self, prompts: torch.Tensor, ours: torch.Tensor, theirs: torch.Tensor) -> str:
        """Our texts (B, N) beside theirs, and what their model makes of theirs as a whole."""
        judge = deepcopy(self.theirs).float()
        mine, whole = [], []
        for prompt, one, other in zip(prompts, ours, theirs, strict=True):
            text = torch.cat((prompt, other)).to(self.given.device)
            logits, again = (self.logits(model, text) for model in (judge, self.theirs))
            mine.append(Parting.of(one, other, logits))
            whole.append(Parting.of(again.argmax(-1), other, logits))
        return f"ours: {worst(mine)}; theirs as a whole: {worst(whole)}"

    def logits(self, model: GPT2LMHeadModel, text: torch.Tensor) -> torch.Tensor:
        """What each new token of a text was chosen from: (T) -> (N, V), without end-of-text."""
        logits = model(text[None, :-1]).logits[0, self.length - 1 :].float().cpu()
        logits[:, 0] = -torch.inf
        return logits


class Parting(NamedTuple):
    """Where two greedy texts first part: how far each one's token is below the likeliest, in steps
    of bf16."""

    one: float
    other: float

    @classmethod
    def of(cls, one: torch.Tensor, other: torch.Tensor, logits: torch.Tensor) -> "Parting | None":
        """From two texts (N) and the judge's logits (N, V); None where they are the same."""
        places = (one != other).nonzero()
        if not len(places):
            return None
        place = int(places[0])
        best = logits[place].max()
        step = 2 ** (best.abs().log2().floor() - BF16_BITS)
        return cls(*(float((best - logits[place, text[place]]) / step) for text in (one, other)))


def worst(partings: list[Parting | None]) -> str:
    """In words, over all texts."""
    apart = [parting for parting in partings if parting is not None]
    equal = f"{len(partings) - len(apart)} of {len(partings)} greedy texts equal"
    if not apart:
        return equal
    gap = max(abs(parting.one - parting.other) for parting in apart)
    one, other = (max(column) for column in zip(*apart, strict=True))
    return (
        f"{equal}, where they part at most {gap:.2f} steps of bf16 apart, "
        f"{one:.2f} and {other:.2f} below the best"
    )


class Rate(NamedTuple):
    """Seconds, or tokens a second, by the clock and of this process's processor time."""

    clock: float
    processor: float

    def of(self, tokens: int) -> "Rate":
        """From seconds."""
        return Rate(tokens / self.clock, tokens / self.processor)


def generate(
    model: GPT2LMHeadModel, prompts: torch.Tensor, new: int, settings: dict[str, Any]
) -> torch.Tensor:
    """transformers' way; gives the tokens drawn."""
    draw = {"do_sample": True, **settings} if settings["temperature"] else {"do_sample": False}
    prompts = prompts.to(model.device)
    out = model.generate(
        prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=new, min_new_tokens=new,
        **draw,
    )  # fmt: skip
    return out[:, prompts.shape[1] :].cpu()


def rate(draw: Callable[[], Any]) -> tuple[Rate, Any]:
    """Seconds of one call, and what it gave."""
    clock, processor = time.perf_counter(), time.process_time()
    drawn = draw()
    return Rate(time.perf_counter() - clock, time.process_time() - processor), drawn


def words(vocab_size: int) -> Tokenizer:
    """A tokenizer of as many words: w1 w2 …, and end-of-text."""
    ids = {"<|endoftext|>": 0} | {f"w{number}": number for number in range(1, vocab_size)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<|endoftext|>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


if __name__ == "__main__":
    main()
