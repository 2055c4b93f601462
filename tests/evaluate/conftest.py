"""A small GPT-2 in a folder that transformers wrote, and transformers' own verdict on it."""

import sys
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel

sys.path.insert(0, str(Path(__file__).parent))
torch.set_num_threads(1)

VOCAB, WINDOW = 270, 16
TEXTS = ["the cat sat on the mat", "ñandú 鳥 and other birds", "", "a hat", "mats and hats, cats"]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    torch.manual_seed(2)
    sizes = {"n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": WINDOW}
    config = GPT2Config(
        **sizes, vocab_size=VOCAB, bos_token_id=0, eos_token_id=0, initializer_range=0.3
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(TEXTS * 3, trainer)
    bpe.save(str(folder / "tokenizer.json"))
    return folder
