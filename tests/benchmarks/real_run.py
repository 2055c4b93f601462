"""A run as users run it: index, train, stop, carry on under another layout, merge, sample.

    python tests/benchmarks/real_run.py --tokens FILE.bin --tokenizer tokenizer.json --work FOLDER \
        --size 345M --layouts 2x2x2-1 1x1x8-1 --steps 40

Every part is the command that the workflow calls. Under each layout (tensor x pipeline x data -
ZeRO) an equal share of the steps is trained, with evaluations, log lines, and checkpoints written
meanwhile. SIGTERM stops each share but the last; the next one carries on. Then the shards are
merged, the merged model's logits compared with the trainer's, and samples drawn from it.

Prints what each share reached in tokens/s, by the median step and by the clock. Both count from the
second step after the share's first checkpoint, when all is compiled. The clock includes
checkpoints, but no evaluations: their seconds stand beside.

``--size tiny --batch 8`` tries it on a CPU, which takes as many processes as the layout has ranks.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from train_case import SEED, SIZES, model_sizes, parallel_of


def main() -> int:
    given = parse()
    given.work.mkdir(parents=True, exist_ok=True)
    web2gpt(given, "index", "--tokens", f"text={given.tokens.with_suffix('')}",
            "--tokenizer", given.tokenizer, "--output", "index", "--work", "work/index",
            "--sequence-length", SIZES[given.size].n_positions,
            "--train-samples", given.steps * batch(given), "--split", "98,2,0")  # fmt: skip
    ends = [given.steps * (k + 1) // len(given.layouts) for k in range(len(given.layouts))]
    for layout, end in zip(given.layouts, ends, strict=True):
        first = len(steps(given))
        train(given, layout, end)
        print(f"{given.size} {layout}: {rates(given, first)}", flush=True)
    web2gpt(given, "merge-checkpoint", "--done", "train/done.json", "--tokenizer", given.tokenizer,
            "--output", "model", "--work", "work/merge", "--verify", "logits")  # fmt: skip
    print("merged: logits are the trainer's")
    web2gpt(given, "sample", "--model", "model", "--output", "samples.jsonl", "--work",
            "work/sample", "--max-new-tokens", 24, "--precision", "fp32")  # fmt: skip
    for line in (given.work / "samples.jsonl").read_text().splitlines():
        print("sample:", json.dumps(json.loads(line)["text"], ensure_ascii=False))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokens", type=Path, required=True, help=".bin, its .idx beside it")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="an empty folder")
    parser.add_argument("--size", choices=list(SIZES), default="345M")
    parser.add_argument("--layouts", nargs="+", default=["1x1x1-1"])
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--every", type=int, default=8, help="steps between checkpoints")
    parser.add_argument("--batch", type=int, help="sequences a step; 512, 0.5M tokens")
    parser.add_argument("--micro-batch", type=int)
    parser.add_argument("--precision", default="bf16", choices=("bf16", "fp16", "fp32"))
    given = parser.parse_args()
    given.tokens, given.tokenizer = given.tokens.resolve(), given.tokenizer.resolve()
    return given


def batch(given: argparse.Namespace) -> int:
    return int(given.batch or SIZES[given.size].batch)


def web2gpt(given: argparse.Namespace, *words: object) -> None:
    """One command of the package; its end is this one's if it fails."""
    if code := begin(given, *words).wait():
        raise SystemExit(f"{words[0]} ended with {code}; see {given.work / 'log'}")


def begin(given: argparse.Namespace, *words: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "web2gpt.cli", *map(str, words)]
    with (given.work / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=given.work, stdout=log, stderr=log, env=os.environ)


def train(given: argparse.Namespace, layout: str, end: int) -> None:
    """Train until ``end``; stop there by SIGTERM if that is not the last step."""
    run = begin(
        given, "train", "--index", "index/manifest.json", "--tokenizer", given.tokenizer,
        "--output", "train", "--checkpoints", "checkpoints", "--work", "work/train",
        "--settings", json.dumps(settings(given, layout)),
    )  # fmt: skip
    if end < given.steps:
        while run.poll() is None and len(steps(given)) < end:
            time.sleep(0.05)
        run.send_signal(signal.SIGTERM)
    code = run.wait()
    if code != (75 if end < given.steps else 0):
        raise SystemExit(f"train ended with {code}; see {given.work / 'log'}")


def settings(given: argparse.Namespace, layout: str) -> dict[str, Any]:
    size = SIZES[given.size]
    return {
        "run": {"seed": SEED},
        "model": model_sizes(size),
        "parallel": parallel_of(layout),
        "schedule": {"warmup_steps": 20},
        "train": {
            "steps": given.steps,
            "micro_batch_size": given.micro_batch or size.micro_batch_size,
            "global_batch_size": batch(given),
            "precision": given.precision,
            "eval_interval": 2 * given.every,
            "eval_batches": 1,
            "checkpoint_interval": given.every,
            "cpu_fallback": True,
        },
    }


def rows(given: argparse.Namespace) -> list[dict[str, Any]]:
    """What the run has told of its steps and evaluations, as far as it is."""
    lines = [
        line
        for path in given.work.glob("checkpoints/*/metrics.jsonl")
        for line in path.read_text().splitlines()
        if line.endswith("}")
    ]
    return [json.loads(line) for line in lines]


def steps(given: argparse.Namespace) -> list[dict[str, Any]]:
    return [row for row in rows(given) if "loss" in row]


def rates(given: argparse.Namespace, first: int) -> str:
    """What the share that begins after ``first`` steps reached."""
    share = steps(given)[first + given.every + 1 :]
    evaluations = {row["step"]: row["time"] for row in rows(given) if "valid_loss" in row}
    after_evaluation = [two for two in pairwise(share) if two[0]["step"] in evaluations]
    lost = sum(evaluations[one["step"]] - one["time"] for one, _ in after_evaluation)
    took = share[-1]["time"] - share[0]["time"] - lost
    tokens = batch(given) * SIZES[given.size].n_positions
    median = statistics.median(row["tokens_per_second"] for row in share)
    clock = tokens * (len(share) - 1) / took
    return (
        f"steps {share[0]['step']} to {share[-1]['step']}, median {median:,.0f} tokens/s, "
        f"by the clock {clock:,.0f}, {len(after_evaluation)} evaluations {lost:.2f} s, "
        f"loss {share[-1]['loss']:.4f}, peak {share[-1]['peak_memory_gib']:.2f} GiB"
    )


if __name__ == "__main__":
    sys.exit(main())
