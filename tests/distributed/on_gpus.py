"""The distributed tests' comparisons on GPUs: ``python tests/distributed/on_gpus.py [--gpus N]``.

Trains the tiny GPT-2 of the tests over NCCL under every layout of a list that fits, and compares
with a plain torch loop on the CPU; then resumes, under other layouts too, and spoils gradients.
Prints a line for each, and ends with exit code 1 if one is wrong. Bounds are wider than on the CPU:
GPUs sum in another order.
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import rank_tasks
import torch
from cells import Cell
from plain_loop import train_plainly
from pool import RankError, Worlds, start_fork_server

BOUNDS = {"fp32": (2e-5, 2e-4), "bf16": (1e-3, 6e-2), "fp16": (1e-3, 6e-2)}  # losses, norms
KEYS = ("losses", "norms")

LAYOUTS = [
    *(Cell(zero=zero) for zero in range(4)),
    Cell(recompute="full"),
    Cell(offload=True),
    *(Cell(precision=precision, zero=zero) for precision in ("bf16", "fp16") for zero in (1, 2, 3)),
    *(Cell(tensor=2, precision=precision) for precision in BOUNDS),
    *(Cell(tensor=2, precision=precision, sequence=True) for precision in BOUNDS),
    *(Cell(pipeline=2, precision=precision) for precision in BOUNDS),
    *(Cell(data=2, zero=zero, precision="bf16") for zero in (1, 2, 3)),
    Cell(pipeline=2, zero=0),
    *(Cell(precision=precision, compile="on") for precision in BOUNDS),
    Cell(recompute="full", precision="bf16", compile="on"),
    Cell(zero=3, precision="bf16", compile="on"),
    *(Cell(tensor=2, precision=precision, compile="on") for precision in BOUNDS),
    Cell(tensor=2, precision="bf16", sequence=True, recompute="full", compile="on"),
    Cell(pipeline=2, precision="bf16", compile="on"),
    *(Cell(data=2, zero=zero, precision="bf16", compile="on") for zero in (2, 3)),
    Cell(tensor=2, pipeline=2, precision="bf16"),
    Cell(tensor=2, data=2, zero=2, precision="bf16"),
    Cell(tensor=2, data=2, zero=3, precision="bf16", compile="on"),
    Cell(tensor=2, pipeline=2, data=2, precision="bf16", sequence=True),
]

ELSEWHERE = [  # saved under the first, resumed under the second
    (Cell(precision=precision, **one), Cell(precision=precision, **other))
    for precision in ("fp32", "bf16")
    for one, other in (
        ({"zero": 1}, {"zero": 3}),
        ({"tensor": 2}, {"zero": 1}),
        ({"tensor": 2}, {"pipeline": 2}),
        ({"pipeline": 2}, {"data": 2, "zero": 3}),
        ({"data": 2, "zero": 3}, {"tensor": 2}),
        ({"data": 2, "zero": 2}, {"zero": 1}),
        ({"zero": 1}, {"data": 2, "zero": 1}),
        ({"tensor": 2, "pipeline": 2, "data": 2}, {"data": 8, "zero": 1, "micro": 1}),
    )
]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--gpus", type=int, default=torch.cuda.device_count())
    arguments.add_argument("--only", default="", help="layouts whose name holds this: compiled")
    given = arguments.parse_args()
    gpus = given.gpus
    if gpus < 1:
        print("no GPU found; on a CPU: pytest tests/distributed")
        return 1
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        start_fork_server(Path(folder) / "extensions", accelerator="cuda")
        worlds = Worlds()
        for what, faults in results(worlds, gpus, Path(folder), given.only):
            wrong += bool(faults)
            print(f"{'WRONG' if faults else 'right'}  {what}  {'; '.join(faults)}", flush=True)
        worlds.kill()
    return int(wrong > 0)


def results(worlds: Worlds, gpus: int, folder: Path, only: str) -> Iterator[tuple[str, list[str]]]:
    truth = train_plainly()
    for cell in (cell for cell in LAYOUTS if cell.size <= gpus and only in str(cell)):
        yield f"parity {cell}", tried(parity, worlds, cell, truth)
        yield f"resume {cell}", tried(resume, worlds, cell, folder / str(cell))
        yield f"overflow or NaN {cell}", tried(bad_gradient, worlds, cell)
    for pair in ELSEWHERE:
        name = " as ".join(map(str, pair))
        if max(cell.size for cell in pair) <= gpus and only in name:
            yield f"resume {name}", tried(relayout, worlds, *pair, folder / name)


def tried(check: Any, worlds: Worlds, cell: Cell, *rest: Any) -> list[str]:
    try:
        return list(check(worlds, cell, *rest))
    except RankError as error:
        return [str(error)]


def parity(worlds: Worlds, cell: Cell, truth: dict[str, Any]) -> Iterator[str]:
    found = worlds[cell.size].run(rank_tasks.train, cell)[0]
    yield from found["faults"]
    for key, bound in zip(KEYS, BOUNDS[cell.precision], strict=True):
        apart = max(abs(a / b - 1) for a, b in zip(found[key], truth[key], strict=True))
        if not apart <= bound:
            yield f"{key} are {apart:.1e} off, more than {bound:.0e}"


def resume(worlds: Worlds, cell: Cell, folder: Path) -> Iterator[str]:
    world = worlds[cell.size]
    unbroken = world.run(rank_tasks.save_then_go_on, cell, folder, 3, 3)[0]
    resumed = world.run(rank_tasks.resume, cell, folder, 3)[0]
    yield from [f"{name} is not what the files hold" for name in resumed["unequal"]]
    yield from resumed["faults"]
    yield from [
        f"{key} are not the same to the bit" for key in KEYS if resumed[key] != unbroken[key]
    ]


def relayout(worlds: Worlds, source: Cell, cell: Cell, folder: Path) -> Iterator[str]:
    unbroken = worlds[source.size].run(rank_tasks.save_then_go_on, source, folder, 3, 3)[0]
    resumed = worlds[cell.size].run(rank_tasks.resume, cell, folder, 3)[0]
    yield from [f"{name} is not what the files hold" for name in resumed["unequal"]]
    yield from resumed["faults"]
    for key, bound in zip(KEYS, BOUNDS[cell.precision], strict=True):
        apart = max(abs(a / b - 1) for a, b in zip(resumed[key], unbroken[key], strict=True))
        if not apart <= bound:
            yield f"{key} are {apart:.1e} off, more than {bound:.0e}"


def bad_gradient(worlds: Worlds, cell: Cell) -> Iterator[str]:
    value = math.inf if cell.precision == "fp16" else math.nan
    found = worlds[cell.size].run(rank_tasks.meet_bad_gradient, cell, value)[0]
    yield from found["faults"]
    if found["skipped"] != [False, False, True, False, False] or not found["same"]:
        yield f"skipped {found['skipped']}, weights {'the same' if found['same'] else 'changed'}"
    if any(found["bad"]) == (cell.precision == "fp16"):
        yield f"reported as bad: {found['bad']}"
    if not all(map(math.isfinite, found["losses"])):
        yield f"losses {found['losses']}"


if __name__ == "__main__":
    sys.exit(main())
