"""Settings of the stage merge."""

from pydantic import Field

from web2gpt.config.base import Real, Settings


class Merge(Settings):
    """From shards to one corpus."""

    frame_bytes: int = Field(4 << 20, ge=1 << 12, description="text in one zstd frame, in bytes")
    shuffle: bool = Field(False, description="seeded shuffle of the documents")
    seed: int = Field(1234, ge=0, description="decides the shuffle; run.seed does not")
    held_out: Real = Field(
        0.0, ge=0, lt=1, description="share of documents, by hash of their id, kept for validation"
    )
