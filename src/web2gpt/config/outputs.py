"""Settings of what comes after training: merge_checkpoint, sample, evaluate, report."""

from typing import Literal

from pydantic import Field

from web2gpt.config.base import Real, Settings


class MergeCheckpoint(Settings):
    """From a checkpoint's shards to a Hugging Face folder."""

    dtype: Literal["float32", "bfloat16", "float16"] = Field(
        "float32", description="of the weights"
    )


class Sample(Settings):
    """Text drawn from the model."""

    prompts: tuple[str, ...] = Field(
        ("The", "This function returns"), description="texts to go on with"
    )
    num_samples: int = Field(2, ge=1, description="samples for each prompt")
    max_new_tokens: int = Field(100, ge=1, description="longest continuation, in tokens")
    temperature: Real = Field(0.8, ge=0, description="0: greedy")
    top_k: int = Field(50, ge=0, description="draw from the k likeliest; 0: all")
    top_p: Real = Field(0.95, gt=0, le=1, description="draw from the least set of this probability")


class Evaluate(Settings):
    """Loss and perplexity on held-out text."""

    split: Literal["valid", "test"] = Field("valid", description="part of the index to evaluate on")
    batch_size: int = Field(16, ge=1, description="sequences computed at once")
