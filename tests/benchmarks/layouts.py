"""Train one model under several layouts on this machine's devices, and compare loss and rate.

    python tests/benchmarks/layouts.py --index results/runs/NAME/index/manifest.json \
        --tokenizer results/data/NAME/tokenizer/tokenizer.json --output FOLDER \
        1x1x1-1 2x1x1-1 1x2x1-1 1x1x2-1 1x1x2-2 1x1x2-3

A layout is tensor x pipeline x data - ZeRO stage; the first is the one that others are compared
with. By default GPT-2 345M in bf16 on GPUs, 200 steps of 64 sequences of 1,024 tokens. Each run's
metrics.jsonl stays in FOLDER; a table and a JSON line are printed.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from train_case import SIZES, model_sizes, parallel_of


def main() -> None:
    arguments = parse()
    runs = {layout: train(arguments, layout) for layout in arguments.layouts}
    control = runs[arguments.layouts[0]]
    rows = [{"layout": layout, **compare(run, control)} for layout, run in runs.items()]
    print(f"{'layout':>10} {'tokens/s':>10} {'last loss':>10} {'largest difference, 2nd half':>30}")
    for row in rows:
        print(
            f"{row['layout']:>10} {row['tokens_per_second']:>10,.0f} {row['loss']:>10.4f} "
            f"{row['difference']:>30.4f}"
        )
    print(json.dumps(rows))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--micro-batch-size", type=int, default=16)
    parser.add_argument("--global-batch-size", type=int, default=64)
    parser.add_argument("--model", type=json.loads, default=model_sizes(SIZES["345M"]))
    parser.add_argument("layouts", nargs="+")
    return parser.parse_args()


def train(arguments: argparse.Namespace, layout: str) -> list[dict[str, Any]]:
    """The logged steps of one run."""
    folder = arguments.output / layout
    settings = {
        "run": {"seed": 1234},
        "model": arguments.model,
        "parallel": parallel_of(layout),
        "optimizer": {"lr": 1.5e-4},
        "schedule": {"warmup_fraction": 0.1, "min_lr": 1e-5},
        "train": {
            "steps": arguments.steps,
            "micro_batch_size": arguments.micro_batch_size,
            "global_batch_size": arguments.global_batch_size,
            "precision": arguments.precision,
            "device": arguments.device,
            "eval_interval": arguments.steps,
            "checkpoint_interval": arguments.steps,
            "log_interval": 5,
        },
    }
    files = {
        "--index": arguments.index,
        "--tokenizer": arguments.tokenizer,
        "--output": folder,
        "--checkpoints": folder / "checkpoints",
        "--work": folder / "work",
    }
    command = [sys.executable, "-m", "web2gpt.cli", "train"]
    command += [str(part) for option in files.items() for part in option]
    subprocess.run([*command, "--settings", json.dumps(settings)], check=True)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if "loss" in record]


def compare(run: list[dict[str, Any]], control: list[dict[str, Any]]) -> dict[str, float]:
    """Median rate, last loss, and the largest difference of losses in the second half."""
    pairs = zip(run, control, strict=True)
    differences = [abs(one["loss"] - other["loss"]) for one, other in pairs]
    rates = [step["tokens_per_second"] for step in run[3:]]
    return {
        "tokens_per_second": statistics.median(rates),
        "loss": run[-1]["loss"],
        "difference": max(differences[len(differences) // 2 :]),
    }


if __name__ == "__main__":
    main()
