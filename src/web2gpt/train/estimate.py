"""What a run will take: parameters, tokens, operations, memory, disk, time.

Formulas and sources: ``train.counts`` and ``train.memory``. Sizes on disk: a checkpoint holds
float32 weights and two moments, 12 bytes a parameter; the data stages' are shares of the text's
size as measured on the demo (docs/estimate.md), good to a factor of two.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from web2gpt.config.derive import padded_vocab_size, world_size
from web2gpt.config.length import Length
from web2gpt.config.train_stage import TrainStage
from web2gpt.config.training import Parallel
from web2gpt.train.counts import (
    flops_per_token,
    parameter_count,
    rank_parameters,
    recomputed_flops_per_token,
)
from web2gpt.train.memory import WORKSPACE, Case, Memory, rank_memory

CHECKPOINT_BYTES = 12  # a parameter
BYTES_PER_TOKEN = 4.3  # of English text, with some 50,000 tokens in the vocabulary
DISK_SHARES = {  # bytes a byte of the corpus's text
    "fetch (WARC)": 0.67,
    "documents": 0.28,
    "deduplicated": 0.28,
    "clean": 0.28,
    "corpus": 0.27,
}
DEFAULT_TFLOPS = 100.0


@dataclass(frozen=True)
class Situation:
    """What is known beside the settings: of the vocabulary, the corpus, the machine."""

    vocab_size: int
    corpus_tokens: int | None = None
    gpu_bytes: float | None = None
    tflops: float | None = None  # that a process really reaches
    on_gpu: bool = True  # else without CUDA's own memory


@dataclass(frozen=True)
class Work:
    """How much is computed. ``recomputed``: operations a token that recomputation adds."""

    steps: int
    samples: int
    tokens: int
    flops_per_token: float
    recomputed: float
    tflops: float  # a process
    seconds: float


@dataclass(frozen=True)
class Disk:
    """Bytes on disk. ``checkpoints``: how many stand at most; ``stages``: about, by artifact."""

    checkpoint: int
    checkpoints: int
    model: int
    text: float
    stages: Mapping[str, float]
    tokens: int
    index: int


@dataclass(frozen=True)
class Estimate:
    """``rank_parameters`` [pipeline stages]; ``memory`` of a rank of the first stage and the last,
    by the stage's number."""

    layout: Parallel
    vocab_size: int
    padded_vocab_size: int
    parameters: int
    rank_parameters: tuple[int, ...]
    work: Work
    memory: Mapping[int, Memory]
    disk: Disk
    situation: Situation

    @classmethod
    def of(cls, stage: TrainStage, situation: Situation) -> "Estimate":
        """For the settings of a run."""
        model, layout, vocab = stage.model, stage.parallel, situation.vocab_size
        padded = padded_vocab_size(vocab, model, layout)
        case = Case(model, layout, stage.train, vocab)
        stages = range(layout.pipeline)
        return cls(
            layout,
            vocab,
            padded,
            parameter_count(model, vocab),
            tuple(rank_parameters(model, layout, padded, number) for number in stages),
            _work(stage, situation),
            {number: rank_memory(case, number) for number in sorted({0, stages[-1]})},
            _disk(stage, situation),
            situation,
        )

    @property
    def epochs(self) -> float | None:
        """Of the training tokens; None where their number is not known."""
        corpus = self.situation.corpus_tokens
        return self.work.tokens / corpus if corpus else None

    def needed(self, memory: Memory) -> float:
        """Bytes of a GPU, or of a process on the CPU."""
        return memory.total if self.situation.on_gpu else memory.allocated

    def buffers(self, memory: Memory) -> float:
        """What of ``needed`` is for buffers and, on a GPU, for CUDA itself."""
        return memory.buffers - (0 if self.situation.on_gpu else WORKSPACE)

    def as_json(self) -> dict[str, Any]:
        """All figures; sizes in bytes."""
        gpu = self.situation.gpu_bytes
        worst = max(map(self.needed, self.memory.values()))
        return {
            "layout": self.layout.model_dump(mode="json") | {"processes": world_size(self.layout)},
            "vocab_size": self.vocab_size,
            "padded_vocab_size": self.padded_vocab_size,
            "parameters": self.parameters,
            "rank_parameters": list(self.rank_parameters),
            **asdict(self.work),
            "epochs": self.epochs,
            "memory": [
                {"stage": number, "needed": self.needed(memory), **asdict(memory)}
                | {"buffers": self.buffers(memory)}
                for number, memory in self.memory.items()
            ],
            "gpu": gpu,
            "fits": None if gpu is None else worst <= gpu,
            "disk": asdict(self.disk),
        }


def _work(stage: TrainStage, situation: Situation) -> Work:
    model, vocab = stage.model, situation.vocab_size
    length = Length.of(stage.train, model.n_positions)
    tokens = length.samples * model.n_positions
    each = flops_per_token(model, vocab)
    extra = recomputed_flops_per_token(model, stage.train.recompute)
    speed = situation.tflops or DEFAULT_TFLOPS
    seconds = tokens * (each + extra) / (speed * 1e12 * world_size(stage.parallel))
    return Work(length.steps, length.samples, tokens, each, extra, speed, seconds)


def _disk(stage: TrainStage, situation: Situation) -> Disk:
    count = parameter_count(stage.model, situation.vocab_size)
    length = Length.of(stage.train, stage.model.n_positions)
    kept = stage.train.keep_last + 1  # one is being written
    if stage.train.keep_every:
        kept += length.steps // stage.train.keep_every
    tokens = situation.corpus_tokens or length.samples * stage.model.n_positions
    text = tokens * BYTES_PER_TOKEN
    return Disk(
        checkpoint=count * CHECKPOINT_BYTES,
        checkpoints=kept,
        model=count * 4,
        text=text,
        stages={name: share * text for name, share in DISK_SHARES.items()},
        tokens=tokens * (2 if situation.vocab_size < 65_500 else 4),
        index=length.samples * 16,
    )
