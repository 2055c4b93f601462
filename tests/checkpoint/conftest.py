"""What the tests of checkpoints share: a tokenizer, and a fork-free torch."""

import sys
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from web2gpt.model.gpt2 import GPT2
from web2gpt.model.initialization import initialize

sys.path.insert(0, str(Path(__file__).parent))

from checkpoint_files import MODEL, VOCAB

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(["the cat and the hat that sat on the mat"] * 3, trainer)
    assert bpe.get_vocab_size() == VOCAB
    bpe.save(str(path))
    return path


@pytest.fixture(scope="session")
def gpt2() -> GPT2:
    model = GPT2(MODEL, VOCAB).eval()
    initialize(model.tensors(), MODEL, seed=5)
    with torch.no_grad():
        for name, parameter in model.tensors().items():
            if name.endswith(".bias"):  # zeros would hide a bias that went astray
                parameter.copy_(torch.randn_like(parameter))
    return model


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real_child: reads files in a child process, as users do")
