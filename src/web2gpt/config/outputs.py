"""Settings of what comes after training: merge_checkpoint, sample, evaluate, report."""

from typing import Literal

from pydantic import Field

from web2gpt.config.base import Real, Settings

DEFAULT_PROMPTS = ("The", "This function returns")


class MergeCheckpoint(Settings):
    """From a checkpoint's shards to a Hugging Face folder."""

    dtype: Literal["float32", "bfloat16", "float16"] = Field(
        "float32", description="of the weights; checkpoints hold float32"
    )
    verify: Literal["auto", "logits", "slices"] = Field(
        "auto",
        description="slices: each is compared with what was written; logits: those of the merged "
        "model with the trainer's too; auto: logits for models under 1 GB",
    )
    max_file_bytes: int = Field(
        50_000_000_000, ge=1, description="weights of more bytes are split into several files"
    )


class ImportCheckpoint(Settings):
    """From a checkpoint of another system to a Hugging Face folder."""

    dtype: Literal["keep", "float32", "bfloat16", "float16"] = Field(
        "keep", description="of the weights; keep: as they are"
    )
    n_head: int | None = Field(
        None, ge=1, description="attention heads, if the checkpoint does not state them"
    )
    checkpoint_version: Real | None = Field(
        None, ge=0, description="decides the order of query_key_value, if it is not stated"
    )
    activation_function: Literal["gelu_new", "gelu"] | None = Field(
        None, description="of the MLP, if not what the checkpoint's settings say"
    )
    max_file_bytes: int = Field(
        50_000_000_000, ge=1, description="weights of more bytes are split into several files"
    )


class Sample(Settings):
    """Text drawn from the model. The settings act in the order in which they stand here."""

    prompts: tuple[str, ...] | None = Field(
        None,
        description="texts to go on with; an empty one starts a document; none: those of "
        f"prompts_file, without one {DEFAULT_PROMPTS[0]!r} and {DEFAULT_PROMPTS[1]!r}",
    )
    prompts_file: str | None = Field(
        None,
        description="prompts, after those of `prompts` if there are any: .txt, one a line, or JSON "
        "lines (compressed or not) with a field 'prompt' or 'text'",
    )
    num_samples: int = Field(2, ge=1, description="samples for each prompt")
    max_new_tokens: int = Field(100, ge=1, description="longest continuation, in tokens")
    min_new_tokens: int = Field(
        1, ge=0, description="visible tokens (not blank) before the text may end"
    )
    repetition_penalty: Real = Field(
        1.0, gt=0, description="divides the positive logits of tokens already there; 1: none"
    )
    temperature: Real = Field(0.8, ge=0, description="divides the logits; 0: always the likeliest")
    top_k: int = Field(50, ge=0, description="draw from the k likeliest; 0: all")
    top_p: Real = Field(0.95, gt=0, le=1, description="draw from the least set of this probability")
    stop: tuple[str, ...] = Field((), description="texts that end a sample; it is cut before them")
    batch_size: int = Field(
        8, ge=1, description="texts drawn at once; does not change them (fp32, on a CPU)"
    )
    device: Literal["auto", "cuda", "cpu"] = Field(
        "auto", description="auto: a GPU if there is one"
    )
    precision: Literal["fp32", "bf16"] = Field(
        "fp32", description="of the weights and of what is computed; bf16: for GPUs, half as large"
    )
    threads: int = Field(
        1, ge=1, description="CPU threads; results depend on it in their last bits"
    )


class SampleRun(Sample):
    """What the command ``sample`` takes: the section, and the run's seed."""

    seed: int = Field(
        1234, ge=0, description="decides the draws, with prompt and position; in a run: run.seed"
    )


class Evaluate(Settings):
    """Loss and perplexity on held-out text, accuracy on the last words of passages."""

    split: str = Field(
        "both",
        pattern=r"^(both|valid|test|valid-.+)$",
        description="parts of the index to evaluate on, all of their tokens: both (valid and "
        "test), valid, test, or valid-<name> of index.validation",
    )
    texts: tuple[str, ...] = Field(
        (), description="text or JSONL files to measure perplexity on, packed or not"
    )
    text_key: str = Field("text", description="of the text in JSONL files")
    text_format: Literal["plain", "wikitext"] = Field(
        "plain", description="of texts; wikitext: its own tokenization is undone first"
    )
    stride: int = Field(
        32, ge=1, description="tokens between overlapping windows on texts; windows start so often"
    )
    cloze: tuple[str, ...] = Field(
        (), description="JSONL files in LAMBADA's format: accuracy on the last word"
    )
    batch_size: int = Field(16, ge=1, description="sequences computed at once")
    device: Literal["auto", "cuda", "cpu"] = Field(
        "auto", description="auto: a GPU if there is one"
    )
    threads: int = Field(
        1, ge=1, description="CPU threads; results depend on it in their last bits"
    )
