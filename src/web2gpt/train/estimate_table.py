"""An estimate for the eye: a table of names and values."""

from collections.abc import Iterator

from web2gpt.config.derive import world_equation
from web2gpt.train.estimate import BYTES_PER_TOKEN, Estimate
from web2gpt.train.memory import Memory

Row = tuple[str, str]


def table_lines(estimate: Estimate) -> list[str]:
    """The table's lines, values aligned."""
    rows = table_rows(estimate)
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {value}" for name, value in rows]


def table_rows(estimate: Estimate) -> list[Row]:
    """A name and a value a row."""
    return [row for part in (_parameters, _work, _memory, _disk) for row in part(estimate)]


def _parameters(estimate: Estimate) -> Iterator[Row]:
    yield "layout", world_equation(estimate.layout)
    yield "vocabulary", f"{estimate.vocab_size:,}, padded to {estimate.padded_vocab_size:,}"
    yield "parameters", f"{estimate.parameters:,}"
    for number, count in enumerate(estimate.rank_parameters):
        where = f" of stage {number}" if estimate.layout.pipeline > 1 else ""
        yield f"  a rank{where}", f"{count:,}"


def _work(estimate: Estimate) -> Iterator[Row]:
    work, each = estimate.work, estimate.work.flops_per_token
    yield "steps", f"{work.steps:,}, {work.samples:,} samples"
    yield "tokens", _short(work.tokens) + f" ({work.tokens:,})"
    if estimate.epochs is not None:
        corpus = estimate.situation.corpus_tokens
        yield "epochs", f"{estimate.epochs:.2f} of {corpus:,} training tokens"
    yield "operations", f"{_short(each)}FLOP a token, {_short(each * work.tokens)}FLOP in all"
    if work.recomputed:
        yield "  recomputed", f"{work.recomputed / each:.0%} more"
    time = _duration(work.seconds)
    yield "time", f"{time} at {work.tflops:g} TFLOP/s a process, all operations counted"


def _memory(estimate: Estimate) -> Iterator[Row]:
    whose = "GPU" if estimate.situation.on_gpu else "process"
    for number, memory in estimate.memory.items():
        where = f", stage {number}" if estimate.layout.pipeline > 1 else ""
        yield f"memory a {whose}{where}", _gigabytes(estimate.needed(memory))
        yield from _kinds(estimate, memory)
    if estimate.situation.gpu_bytes:
        yield "the GPU has", _gigabytes(estimate.situation.gpu_bytes)


def _kinds(estimate: Estimate, memory: Memory) -> Iterator[Row]:
    yield "  weights", _gigabytes(memory.weights)
    yield "  gradients", _gigabytes(memory.gradients)
    yield "  optimizer", _gigabytes(memory.optimizer)
    yield "  activations", _gigabytes(memory.activations)
    yield "  logits", _gigabytes(memory.logits)
    name = "  buffers, CUDA" if estimate.situation.on_gpu else "  buffers"
    yield name, _gigabytes(estimate.buffers(memory))
    if memory.host:
        yield "  on the CPU", _gigabytes(memory.host)


def _disk(estimate: Estimate) -> Iterator[Row]:
    disk = estimate.disk
    each, most = _gigabytes(disk.checkpoint), _gigabytes(disk.checkpoints * disk.checkpoint)
    yield (
        "checkpoint",
        f"{each}, as much of the CPU's memory; at most {disk.checkpoints} at a time, {most}",
    )
    yield "model", f"{_gigabytes(disk.model)} in float32"
    yield "text", f"{_gigabytes(disk.text)} at {BYTES_PER_TOKEN} bytes a token"
    for name, size in disk.stages.items():
        yield f"  {name}", f"about {_gigabytes(size)}"
    yield "  tokens (.bin)", _gigabytes(disk.tokens)
    yield "  sample index", _gigabytes(disk.index)


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
