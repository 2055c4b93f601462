"""A small GPT-2 with sharp opinions, in a folder that transformers wrote."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel

from web2gpt.checkpoint.huggingface import Stated, load_model
from web2gpt.config.outputs import SampleRun
from web2gpt.model.gpt2 import GPT2
from web2gpt.sample.drawable import Drawable
from web2gpt.sample.generate import Sampled, Sampler

torch.set_num_threads(1)  # many tiny steps: threads would only wait for each other

IDS = 280
PADDED = 288
WINDOW = 32


@dataclass(frozen=True)
class Twin:
    """One model twice: its folder, transformers' and ours. Ids from ``IDS`` on are padding."""

    folder: Path
    theirs: GPT2LMHeadModel
    ours: GPT2
    stated: Stated
    drawable: Drawable

    def sample(self, prompts: list[str], **settings: Any) -> list[Sampled]:
        """Our samples in the order of the prompts."""
        run = SampleRun(**settings)
        sampler = Sampler(self.ours, self.stated.model, self.drawable, run)
        return [sampled for _, sampled in sorted(sampler.run(prompts), key=lambda pair: pair[0])]


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=IDS,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    text = "stop the cat and the other hats that sat on the mat, said the cat in the hat"
    bpe.train_from_iterator([text] * 3, trainer)
    assert bpe.get_vocab_size() == IDS
    return bpe


@pytest.fixture(scope="session")
def make_twin(
    tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer
) -> Callable[..., Twin]:
    def make(edit: Callable[[GPT2LMHeadModel], object] | None = None, spread: float = 0.4) -> Twin:
        folder = tmp_path_factory.mktemp("model")
        torch.manual_seed(3)
        sizes = {"n_layer": 2, "n_embd": 32, "n_head": 4, "n_positions": WINDOW}
        config = GPT2Config(
            **sizes,
            vocab_size=PADDED,
            bos_token_id=0,
            eos_token_id=0,
            pad_token_id=0,
            initializer_range=spread,
        )
        theirs = GPT2LMHeadModel(config).eval()
        with torch.no_grad():
            if edit is not None:
                edit(theirs)
        theirs.save_pretrained(folder)
        tokenizer.save(str(folder / "tokenizer.json"))
        ours, stated = load_model(folder)
        drawable = Drawable.of(folder / "tokenizer.json", stated.vocab_size, stated.end_of_text)
        return Twin(folder, theirs, ours, stated, drawable)

    return make


@pytest.fixture(scope="session")
def twin(make_twin: Callable[..., Twin]) -> Twin:
    def no_padding(theirs: GPT2LMHeadModel) -> None:
        """Their generation must not draw padding: give it rows that never win."""
        theirs.transformer.ln_f.bias[0] = 10.0
        theirs.transformer.wte.weight[IDS:, 0] = -50.0

    return make_twin(no_padding)
