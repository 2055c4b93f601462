"""A tiny corpus of tokens, indexed by the real stage."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from web2gpt.config.tokens import IndexRun
from web2gpt.tokens.index import IndexInputs, build_index
from web2gpt.tokens.indexed import bin_path, idx_path, write_idx

STEPS, BATCH, LENGTH = 24, 4, 32
NAN_AT, SPIKE_AT, SKIPPED = 5, 23, (10, 11)
PLANTED = f"nan:{NAN_AT},spike:{SPIKE_AT}"


@dataclass(frozen=True)
class Data:
    """Where the index and the tokenizer of the tiny corpus stand."""

    index: Path
    tokenizer: Path


def make_data(folder: Path) -> Data:
    """Tokenizer, tokens and index in ``folder``; one of two sources is for validation only."""
    tokenizer = tokenizers.Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel()
    trainer = BpeTrainer(
        vocab_size=257,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["a"], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    prefixes = [(name, folder / name) for name in ("tiny", "held")]
    for seed, (_, prefix) in enumerate(prefixes):
        write_tokens(prefix, seed)
    inputs = IndexInputs(prefixes, {}, {}, folder / "tokenizer.json")
    settings = IndexRun(
        split="80,20,0",
        sequence_length=LENGTH,
        train_samples=STEPS * BATCH,
        validation=("held",),
    )
    build_index(inputs, folder / "index", folder / "work", settings)
    return Data(folder / "index" / "manifest.json", folder / "tokenizer.json")


def write_tokens(prefix: Path, seed: int) -> None:
    """Forty documents of counting upwards: something that can be learnt at once."""
    starts = np.random.default_rng(seed).integers(1, 200, 40)
    documents = [np.append((start + np.arange(99)) % 256 + 1, 0) for start in starts]
    bin_path(prefix).write_bytes(np.concatenate(documents).astype("<u2").tobytes())
    with idx_path(prefix).open("wb") as file:
        write_idx(file, np.array([len(d) for d in documents]), np.dtype("<u2"))


def settings(**train: Any) -> dict[str, Any]:
    """The smallest run that has everything; ``train`` overrides settings of that section."""
    return {
        "model": {"n_layer": 2, "n_embd": 32, "n_head": 2, "n_positions": LENGTH},
        "parallel": {"tensor": 2},
        "optimizer": {"lr": 1e-3},
        "train": {
            "steps": STEPS,
            "micro_batch_size": 2,
            "global_batch_size": BATCH,
            "rampup_start": 2,
            "rampup_increment": 2,
            "rampup_samples": 12,
            "skip_steps": ["10-11"],
            "device": "cpu",
            "checkpoint_interval": 4,
            "eval_interval": 12,
            "eval_batches": 1,
            "keep_last": 9,
            **train,
        },
    }
