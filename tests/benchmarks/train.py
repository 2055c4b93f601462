"""Training speed on GPUs: this trainer beside nanoGPT and Hugging Face, in one run.

    python tests/benchmarks/train.py --tokens FILE.bin --output FOLDER --nanogpt CHECKOUT \
        --sizes 345M 124M --contenders ours nanogpt huggingface

A contender may have settings of its own, of the section ``train`` or a layout (tensor x pipeline
x data - ZeRO): ``ours:compile=off``, ``ours:micro_batch_size=8,recompute=full``,
``ours:layout=2x1x1-1,sequence=on``, ``nanogpt:micro_batch_size=32``. Cases run one after the other
as they are given, each in processes of its own with a time limit; a first case measures matrix
products. Every result is appended to FOLDER/results.jsonl as it comes, so a call that is cut keeps
what it had, and the table is printed after each. Tokens are real ones, the same windows in the same
order for all; steps are timed between CUDA events, the median counts. ``--sizes tiny --device cpu``
tries all of it here.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from train_case import SIZES, Case

PROGRAM = Path(__file__).with_name("train_case.py")
PEAK = 989.0  # TFLOP/s of an H100 or H200 in bf16, dense, by the data sheet
COLUMNS = (
    ("case", 44), ("tokens/s", 10), ("TFLOP/s", 8), ("of 989", 7), ("of product", 10),
    ("peak GB", 8), ("estimate", 9), ("loss", 8), ("start s", 8),
)  # fmt: skip


def main() -> int:
    arguments = parse()
    arguments.output.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + arguments.budget
    results: list[dict[str, Any]] = []
    for case in cases(arguments):
        limit = min(arguments.limit, deadline - time.monotonic())
        result = {"case": case.name, "error": "no time left"} if limit < 10 else run(case, limit)
        results.append(result)
        with (arguments.output / "results.jsonl").open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(table(results), flush=True)
    for result in results:
        print_breakdown(result, results[0])
    return int(all("error" in result for result in results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokens", type=Path, required=True, help=".bin; its .idx tells the type")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="processes' folders and logs; by default OUTPUT")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=["345M"])
    parser.add_argument("--contenders", nargs="+", default=["ours"])
    parser.add_argument("--nanogpt", type=Path, help="checkout of karpathy/nanoGPT")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--vocab-size", type=int, default=50257)
    parser.add_argument("--batch", type=int, help="sequences a step; 512, 0.5M tokens")
    parser.add_argument("--steps", type=int, help="timed steps; by size")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--precision", default="bf16", choices=("bf16", "fp16", "fp32"))
    parser.add_argument("--no-compile", action="store_true", help="rivals without torch.compile")
    parser.add_argument("--lr", type=float, default=3e-4, help="after 20 steps; constant")
    parser.add_argument("--breakdown", action="store_true", help="profile one more step")
    parser.add_argument("--limit", type=float, default=200.0, help="seconds a case")
    parser.add_argument("--budget", type=float, default=570.0, help="seconds in all")
    return parser.parse_args()


def cases(arguments: argparse.Namespace) -> list[Case]:
    """The matrix product, then each size under each contender."""
    found = [case_of(arguments, arguments.sizes[0], "product")]
    found += [
        case_of(arguments, size, name) for size in arguments.sizes for name in arguments.contenders
    ]
    return found


def case_of(arguments: argparse.Namespace, size: str, contender: str) -> Case:
    kind, _, text = contender.partition(":")
    settings = dict(pair.split("=") for pair in text.split(",") if pair)
    layout = settings.pop("layout", "1x1x1-1")
    defaults = SIZES[size]
    return Case(
        name=f"{size} {contender}",
        contender=kind,
        size=size,
        micro_batch_size=int(settings.pop("micro_batch_size", defaults.micro_batch_size)),
        batch=arguments.batch or defaults.batch,
        steps=arguments.steps or defaults.steps,
        warmup=arguments.warmup,
        dropout=arguments.dropout,
        precision=arguments.precision,
        layout=layout,
        settings=settings,
        device=arguments.device,
        compile=not arguments.no_compile,
        tokens=str(arguments.tokens),
        vocab_size=arguments.vocab_size,
        nanogpt=str(arguments.nanogpt or ""),
        breakdown=arguments.breakdown,
        lr=arguments.lr,
        folder=str((arguments.work or arguments.output) / folder_name(size, contender)),
    )


def folder_name(size: str, contender: str) -> str:
    return "".join(
        letter if letter.isalnum() or letter in "-." else "_" for letter in f"{size}-{contender}"
    )


def run(case: Case, limit: float) -> dict[str, Any]:
    """One case in processes of its own; ``error`` in the result if it failed or took too long."""
    folder = Path(case.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("result.json", "rendezvous"):
        (folder / name).unlink(missing_ok=True)
    ranks = [start(case, rank, folder) for rank in range(case.world_size)]
    error = wait(ranks, limit)
    written = folder / "result.json"
    if not error and not written.exists():
        error = "no result"
    if error:
        log = (folder / "rank_0.log").read_text(errors="replace").splitlines()
        return {"case": case.name, "error": error, "log": log[-30:]}
    result: dict[str, Any] = json.loads(written.read_text())
    return {"case": case.name, "settings": asdict(case), **result}


def start(case: Case, rank: int, folder: Path) -> "subprocess.Popen[bytes]":
    size = str(case.world_size)
    environment = {
        **os.environ,
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": size, "LOCAL_SIZE": size,
        "DS_ACCELERATOR": case.device,
    }  # fmt: skip
    with (folder / f"rank_{rank}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(PROGRAM), json.dumps(asdict(case))],
            env=environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def wait(ranks: "list[subprocess.Popen[bytes]]", limit: float) -> str:
    """Wait for all; the reason why they were ended, if they were."""
    deadline = time.monotonic() + limit
    error = ""
    while not error and any(process.poll() is None for process in ranks):
        time.sleep(0.1)
        if any(process.poll() for process in ranks):
            error = "a process failed"
        if time.monotonic() > deadline:
            error = f"took longer than {limit:.0f} s"
    if any(process.poll() for process in ranks):
        error = error or "a process failed"
    for process in ranks:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # with the compiler's helpers
        process.wait()
    return error


def table(results: list[dict[str, Any]]) -> str:
    product = next(
        (r["tflops"] for r in results if r["case"].endswith(" product") and "tflops" in r), None
    )
    lines = ["  ".join(f"{name:>{width}}" for name, width in COLUMNS)]
    for result in results:
        if "error" in result:
            log = " | ".join(result.get("log", []))[-300:]
            lines.append(f"{result['case']:>44}  {result['error']}: {log}")
        else:
            lines.append(
                "  ".join(
                    f"{text:>{width}}"
                    for text, (_, width) in zip(row(result, product), COLUMNS, strict=True)
                )
            )
    return "\n".join(lines)


def row(result: dict[str, Any], product: float | None) -> list[str]:
    tflops, peak, estimate = (
        result["tflops"],
        result.get("peak_bytes"),
        result.get("estimate_bytes"),
    )
    return [
        result["case"],
        f"{result['tokens_per_second']:,.0f}" if "tokens_per_second" in result else "",
        f"{tflops:.1f}",
        f"{tflops / PEAK:.1%}",
        f"{tflops / product:.1%}" if product else "",
        f"{peak / 1e9:.2f}" if peak else "",
        f"{estimate / 1e9:.2f}" if estimate else "",
        f"{result['losses'][-1]:.4f}" if "losses" in result else "",
        f"{result['start_seconds']:.0f}" if "start_seconds" in result else "",
    ]


def print_breakdown(result: dict[str, Any], product: dict[str, Any]) -> None:
    """What a step was spent on, and what it cannot do without at the rates of this machine."""
    if "breakdown" not in result:
        return
    parts = result["breakdown"]
    print(
        f"{result['case']}, ms of a step of {parts['step_ms']:.1f}: {listed(parts['milliseconds'])}"
    )
    if "tflops" in product:
        from train_breakdown import floors

        rates = product["tflops"], product["bytes_per_second"]
        print(f"  at least: {listed(floors(Case(**result['settings']), *rates))}")


def listed(milliseconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {spent:.1f}" for name, spent in milliseconds.items())


if __name__ == "__main__":
    sys.exit(main())
