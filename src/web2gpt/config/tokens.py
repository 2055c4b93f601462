"""Settings of tokenizer, tokenize and index."""

from typing import Literal

from pydantic import Field

from web2gpt.config.base import Settings


class Tokenizer(Settings):
    """Byte-level BPE, trained here or taken as it is."""

    path: str | None = Field(
        None, description="tokenizer.json, a folder with vocab.json and merges.txt; none: train one"
    )
    vocab_size: int = Field(2048, ge=257, description="size to train, <|endoftext|> included")
    min_frequency: int = Field(2, ge=1, description="pairs seen less often are not merged")
    sample_bytes: int = Field(
        1 << 30, ge=1, description="text to train on: all of it, or an even sample of this size"
    )


class Tokenize(Settings):
    """From text to token ids."""

    append_eod: bool = Field(True, description="end each document with <|endoftext|>")


class Index(Settings):
    """Which documents are trained on, and in which order."""

    split: str = Field("949,50,1", description="shares of train, validation and test, by documents")
    order: Literal["stable", "megatron"] = Field(
        "stable",
        description="stable: a longer run begins like a shorter one; megatron: as megatron-core",
    )
