"""Settings of tokenizer, tokenize and index."""

import re
from typing import Literal

from pydantic import Field, field_validator

from web2gpt.config.base import Settings


class Tokenizer(Settings):
    """Byte-level BPE, trained here or taken as it is."""

    path: str | None = Field(
        None,
        description="tokenizer.json, vocab.json beside merges.txt, or a folder of either; "
        "none: train one",
    )
    vocab_size: int = Field(2048, ge=257, description="size to train, <|endoftext|> included")
    min_frequency: int = Field(2, ge=1, description="pairs seen less often are not merged")
    sample_bytes: int = Field(
        1 << 30, ge=1, description="text to train on: all of it, or an even sample of this size"
    )
    eod: str | None = Field(
        None,
        description="end-of-document token of a given tokenizer; none: <|endoftext|>, "
        "else the eos_token that the folder names",
    )


class Tokenize(Settings):
    """From text to token ids."""

    append_eod: bool = Field(True, description="end each document with the end-of-document token")
    part_bytes: int = Field(
        256 << 20, ge=1, description="text encoded between two points that a rerun resumes from"
    )


class Index(Settings):
    """Which documents are trained on, and in which order."""

    split: str = Field("949,50,1", description="shares of train, validation and test, by documents")
    order: Literal["stable", "megatron"] = Field(
        "stable",
        description="stable: a longer run begins like a shorter one; megatron: as megatron-core",
    )
    validation: tuple[str, ...] = Field(
        (),
        description="sources that are never trained on: part of the validation, and each a "
        "validation set of its own, valid-<name>",
    )

    @field_validator("split")
    @classmethod
    def _split_has_shares(cls, value: str) -> str:
        number = r"(\d+\.?\d*|\.\d+)"
        shares = re.fullmatch(rf"\s*{number}(\s*[,/]\s*{number}){{0,2}}\s*", value)
        total = sum(map(float, re.split("[,/]", value))) if shares else 0.0
        if not 0 < total < float("inf"):
            raise ValueError(
                f"split = {value!r} is not one to three shares such as '949,50,1', not all zero"
            )
        return value


class IndexRun(Index):
    """What the sample index of one run is made from."""

    seed: int = Field(
        1234, ge=0, description="decides the order of documents and samples; in a run: run.seed"
    )
    sequence_length: int = Field(128, ge=1, description="tokens of input in a sample (n_positions)")
    train_samples: int = Field(
        4800, ge=1, description="samples to train on: steps x global_batch_size"
    )
