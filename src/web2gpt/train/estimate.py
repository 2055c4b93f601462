"""What a run will take: parameters, tokens, operations, memory, disk, time; as one table.

Formulas and sources: ``train.counts`` and ``train.memory``. Sizes on disk: a checkpoint holds
float32 weights and two moments, 12 bytes a parameter; the data stages' are shares of the text's
size as measured on the demo (docs/estimate.md), good to a factor of two.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from web2gpt.config.derive import padded_vocab_size, world_equation, world_size
from web2gpt.config.length import Length
from web2gpt.config.train_stage import TrainStage
from web2gpt.train.counts import (
    flops_per_token,
    parameter_count,
    rank_parameters,
    recomputed_flops_per_token,
)
from web2gpt.train.memory import WORKSPACE, Case, Memory, rank_memory

CHECKPOINT_BYTES = 12  # a parameter
BYTES_PER_TOKEN = 4.3  # of English text, with some 50,000 tokens in the vocabulary
DISK_SHARES = (  # bytes a byte of the corpus's text
    ("fetch (WARC)", 0.67),
    ("documents", 0.28),
    ("deduplicated", 0.28),
    ("clean", 0.28),
    ("corpus", 0.27),
)
DEFAULT_TFLOPS = 100.0

Row = tuple[str, str]


@dataclass(frozen=True)
class Situation:
    """What is known beside the settings: of the vocabulary, the corpus, the machine."""

    vocab_size: int
    corpus_tokens: int | None = None
    gpu_bytes: float | None = None
    tflops: float | None = None  # that a process really reaches
    on_gpu: bool = True  # else without CUDA's own memory


def estimate_rows(stage: TrainStage, situation: Situation) -> list[Row]:
    """The table, a name and a value a row."""
    rows: list[Row] = []
    for part in (_parameters, _work, _memory, _disk):
        rows.extend(part(stage, situation))
    return rows


def format_rows(rows: list[Row]) -> list[str]:
    """The table's lines, values aligned."""
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {value}" for name, value in rows]


def _parameters(stage: TrainStage, situation: Situation) -> Iterator[Row]:
    model, layout, vocab = stage.model, stage.parallel, situation.vocab_size
    padded = padded_vocab_size(vocab, model, layout)
    yield "layout", world_equation(layout)
    yield "vocabulary", f"{vocab:,}, padded to {padded:,}"
    yield "parameters", f"{parameter_count(model, vocab):,}"
    counts = [rank_parameters(model, layout, padded, n) for n in range(layout.pipeline)]
    for number, count in enumerate(counts):
        where = f" of stage {number}" if layout.pipeline > 1 else ""
        yield f"  a rank{where}", f"{count:,}"


def _work(stage: TrainStage, situation: Situation) -> Iterator[Row]:
    model, vocab = stage.model, situation.vocab_size
    length = Length.of(stage.train, model.n_positions)
    tokens = length.samples * model.n_positions
    yield "steps", f"{length.steps:,}, {length.samples:,} samples"
    yield "tokens", _short(tokens) + f" ({tokens:,})"
    if situation.corpus_tokens:
        epochs = tokens / situation.corpus_tokens
        yield "epochs", f"{epochs:.2f} of {situation.corpus_tokens:,} training tokens"
    each = flops_per_token(model, vocab)
    extra = recomputed_flops_per_token(model, stage.train.recompute)
    yield "operations", f"{_short(each)}FLOP a token, {_short(each * tokens)}FLOP in all"
    if extra:
        yield "  recomputed", f"{extra / each:.0%} more"
    speed = situation.tflops or DEFAULT_TFLOPS
    seconds = tokens * (each + extra) / (speed * 1e12 * world_size(stage.parallel))
    yield "time", f"{_duration(seconds)} at {speed:g} TFLOP/s a process, all operations counted"


def _memory(stage: TrainStage, situation: Situation) -> Iterator[Row]:
    layout = stage.parallel
    for number in sorted({0, layout.pipeline - 1}):
        case = Case(stage.model, layout, stage.train, situation.vocab_size)
        memory = rank_memory(case, number)
        where = f", stage {number}" if layout.pipeline > 1 else ""
        whose, own = ("GPU", memory.total) if situation.on_gpu else ("process", memory.allocated)
        yield f"memory a {whose}{where}", _gigabytes(own)
        yield from _kinds(memory, situation.on_gpu)
    if situation.gpu_bytes:
        yield "the GPU has", _gigabytes(situation.gpu_bytes)


def _kinds(memory: Memory, on_gpu: bool) -> Iterator[Row]:
    yield "  weights", _gigabytes(memory.weights)
    yield "  gradients", _gigabytes(memory.gradients)
    yield "  optimizer", _gigabytes(memory.optimizer)
    yield "  activations", _gigabytes(memory.activations)
    yield "  logits", _gigabytes(memory.logits)
    if on_gpu:
        yield "  buffers, CUDA", _gigabytes(memory.buffers)
    else:
        yield "  buffers", _gigabytes(memory.buffers - WORKSPACE)
    if memory.host:
        yield "  on the CPU", _gigabytes(memory.host)


def _disk(stage: TrainStage, situation: Situation) -> Iterator[Row]:
    count = parameter_count(stage.model, situation.vocab_size)
    each, kept = count * CHECKPOINT_BYTES, stage.train.keep_last + 1
    length = Length.of(stage.train, stage.model.n_positions)
    if stage.train.keep_every:
        kept += length.steps // stage.train.keep_every
    yield "checkpoint", f"{_gigabytes(each)}; at most {kept} at a time, {_gigabytes(kept * each)}"
    yield "model", f"{_gigabytes(count * 4)} in float32"
    tokens = situation.corpus_tokens or length.samples * stage.model.n_positions
    wide = 2 if situation.vocab_size < 65_500 else 4
    text = tokens * BYTES_PER_TOKEN
    yield "text", f"{_gigabytes(text)} at {BYTES_PER_TOKEN} bytes a token"
    for name, share in DISK_SHARES:
        yield f"  {name}", f"about {_gigabytes(share * text)}"
    yield "  tokens (.bin)", _gigabytes(wide * tokens)
    yield "  sample index", _gigabytes(length.samples * 16)


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.2f} GB" if size >= 1e7 else f"{size / 1e6:,.2f} MB"


def _short(number: float) -> str:
    for scale, name in ((1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if number >= scale:
            return f"{number / scale:.3g} {name}"
    return f"{number:,.0f} "


def _duration(seconds: float) -> str:
    if seconds >= 86400:
        return f"{seconds / 86400:,.1f} days"
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.1f} minutes"
