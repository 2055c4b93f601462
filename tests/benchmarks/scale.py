"""Layouts of large models on many GPUs: memory, tokens a second, what goes over which wire.

    python tests/benchmarks/scale.py [--tflops 500]

Nothing is run: memory and operations are `web2gpt estimate`'s own formulas (train.memory,
train.counts); ``--tflops`` is what one GPU really reaches (one H200: 523 with 345M, 542 with 1.5B,
in bf16; docs/log.md). Bytes a GPU sends for one step, t, p, d as in docs/estimate.md, B sequences
of S positions a step, h wide, L blocks:

    tensor    8 L/p · B S/d · h · 2 bytes · (t-1)/t    Shoeybi et al. 2019: four all-reduces a block
              (as reduce-scatter and all-gather with parallel.sequence); half more when blocks are
              made again
    data      parameters a rank · (4 + 2) bytes · (d-1)/d    ZeRO 1: float32 gradients are
              scattered, 16-bit weights gathered
    pipeline  2 · B S/d · h/t · 2 bytes

Tokens a second: that rate for all GPUs, less the pipeline's bubble, (p-1)/(m+p-1) for m
micro-batches; waiting for wires is not in it: the rates beside it say what they have to carry.
"""

import argparse
from dataclasses import dataclass

from web2gpt.config.derive import BatchPlan, check_layout, padded_vocab_size
from web2gpt.config.training import Model, Parallel, Train
from web2gpt.train.counts import (
    flops_per_token,
    parameter_count,
    rank_parameters,
    recomputed_flops_per_token,
)
from web2gpt.train.memory import Case, worst_memory

VOCABULARY = 50257
MODELS = {
    "1.5B": Model(n_layer=48, n_embd=1600, n_head=25, n_positions=1024),
    "8B": Model(n_layer=38, n_embd=4096, n_head=32, n_positions=2048),
    "70B": Model(n_layer=86, n_embd=8192, n_head=64, n_positions=2048),
}
# model, GPUs, tensor, pipeline, micro-batch, global batch, recomputation
LAYOUTS = (
    ("1.5B", 8, 1, 1, 8, 512, "selective"),
    ("1.5B", 64, 1, 1, 8, 512, "selective"),
    ("1.5B", 256, 1, 1, 4, 1024, "selective"),
    ("8B", 8, 4, 1, 4, 256, "selective"),
    ("8B", 32, 4, 1, 4, 256, "selective"),
    ("8B", 256, 4, 1, 4, 1024, "selective"),
    ("8B", 1024, 4, 1, 4, 2048, "selective"),
    ("70B", 32, 8, 4, 1, 512, "full"),
    ("70B", 64, 8, 4, 1, 512, "full"),
    ("70B", 256, 8, 4, 1, 1024, "selective"),
    ("70B", 1024, 8, 8, 1, 2048, "selective"),
)


@dataclass(frozen=True)
class Wires:
    """Bytes that one GPU sends in one step."""

    tensor: float
    data: float
    pipeline: float


def wires(model: Model, layout: Parallel, train: Train) -> Wires:
    t, p, d = layout.tensor, layout.pipeline, layout.data
    share = train.global_batch_size / d * model.n_positions * model.n_embd * 2
    again = 1.5 if train.recompute == "full" else 1.0
    padded = padded_vocab_size(VOCABULARY, model, layout)
    largest = max(rank_parameters(model, layout, padded, stage) for stage in range(p))
    return Wires(
        tensor=again * 8 * model.n_layer / p * share * (t - 1) / t,
        data=largest * 6 * (d - 1) / d,
        pipeline=2 * share / t if p > 1 else 0.0,
    )


def row(name: str, gpus: int, layout: Parallel, train: Train, tflops: float) -> str:
    model = MODELS[name]
    check_layout(model, layout, train)
    batches = BatchPlan.of(train, layout).accumulation
    busy = batches / (batches + layout.pipeline - 1)
    each = flops_per_token(model, VOCABULARY)
    each += recomputed_flops_per_token(model, train.recompute)
    rate = gpus * tflops * 1e12 * busy / each
    seconds = train.global_batch_size * model.n_positions / rate
    sent = wires(model, layout, train)
    memory = worst_memory(Case(model, layout, train, VOCABULARY)).total
    return (
        f"| {name} | {gpus:,} | {layout.tensor} x {layout.pipeline} x {layout.data} | "
        f"{train.micro_batch_size} | {train.recompute} | {memory / 1e9:.0f} GB | {rate:,.0f} | "
        f"{seconds:.2f} s | {sent.tensor / 1e9:.0f}, {sent.tensor / seconds / 1e9:.0f} | "
        f"{sent.data / 1e9:.1f}, {sent.data / seconds / 1e9:.1f} | "
        f"{sent.pipeline / 1e9:.2f}, {sent.pipeline / seconds / 1e9:.2f} |"
    )


def main() -> None:
    """Print the table of docs/scaling.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tflops", type=float, default=500.0)
    tflops = parser.parse_args().tflops
    for name, model in MODELS.items():
        print(f"{name}: {parameter_count(model, VOCABULARY):,} parameters")
    print(
        "| model | GPUs | tensor x pipeline x data | micro-batch | recompute | memory | tokens/s | "
        "step | tensor: GB a step, GB/s | data | pipeline |\n|" + "---|" * 11
    )
    for name, gpus, tensor, pipeline, micro, batch, recompute in LAYOUTS:
        layout = Parallel(
            tensor=tensor,
            pipeline=pipeline,
            data=gpus // tensor // pipeline,
            zero=1,
            sequence=tensor > 1,
        )
        train = Train.model_validate(
            {
                "micro_batch_size": micro,
                "global_batch_size": batch,
                "precision": "bf16",
                "recompute": recompute,
            }
        )
        print(row(name, gpus, layout, train, tflops))


if __name__ == "__main__":
    main()
