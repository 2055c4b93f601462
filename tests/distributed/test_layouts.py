"""The same model under every layout: losses, norms and weights as a plain torch loop has them."""

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import rank_tasks
from cells import BOUNDS, OPTIMIZER, RELATIVE, WEIGHTS, Cell, Shape
from plain_loop import train_plainly, transformers_gpt2
from pool import Worlds

from web2gpt.checkpoint.joined import JoinedCheckpoint
from web2gpt.checkpoint.load import newest_checkpoint
from web2gpt.config.combinations import Combination, refusal
from web2gpt.config.derive import check_layout

SHORT = [
    *(Cell(zero=zero) for zero in (0, 1, 3)),
    Cell(micro=8, recompute="selective"),
    Cell(offload=True, zero=2),
    *(Cell(tensor=2, zero=zero) for zero in (0, 3)),
    Cell(tensor=2, recompute="full", micro=4),
    Cell(tensor=2, sequence=True),
    *(Cell(data=2, zero=zero) for zero in (0, 1, 2, 3)),
    *(Cell(pipeline=2, zero=zero) for zero in (0, 1)),
    Cell(pipeline=2, recompute="full", micro=1),
    Cell(tensor=2, pipeline=2, sequence=True),
    Cell(tensor=2, data=2, zero=2),
    Cell(tensor=4),
    Cell(pipeline=3, micro=1),
    Cell(data=3, zero=3, micro=1, batch=6),  # shards of unequal size
]

BY_SGD = [Cell(zero=3), Cell(tensor=2, sequence=True), Cell(data=2, zero=2), Cell(pipeline=2)]

LOW = [
    Cell(precision="bf16", zero=2),
    Cell(precision="bf16", tensor=2, zero=1, sequence=True),
    Cell(precision="bf16", pipeline=2),
    Cell(precision="fp16", zero=1),
    Cell(precision="fp16", pipeline=2),
]


def grid() -> list[Cell]:
    """Every legal (tensor, pipeline, data) and ZeRO with up to eight processes."""
    sizes = [
        (tensor, pipeline, data)
        for tensor, pipeline, data in product((1, 2, 4), (1, 2, 3, 4), range(1, 9))
        if tensor * pipeline * data <= 8
    ]
    cells = [
        Cell(*size, zero=zero, micro=2 if size[2] in (1, 2, 4) else 1, batch=divided(size[2]))
        for size in sizes
        for zero in range(4)
    ]
    return [cell for cell in cells if is_legal(cell)]


def divided(data: int) -> int:
    """A global batch that so many replicas can share."""
    return 8 if 8 % data == 0 else 2 * data


def variations() -> list[Cell]:
    """Micro-batches, sequence parallelism, recomputation and offload where they may matter."""
    shapes = [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 1), (2, 1, 2), (1, 2, 2)]
    cells = [
        Cell(*size, micro=micro) for size in shapes for micro in (1, 4) if micro * size[2] <= 8
    ]
    cells += [replace(cell, sequence=True) for cell in grid() if cell.tensor > 1]
    for size, kind in product(shapes, ("selective", "full")):
        cells.append(Cell(*size, recompute=kind))
        cells.append(Cell(*size, recompute=kind, sequence=True))
    cells += [Cell(*size, zero=3, recompute="full") for size in ((1, 1, 1), (2, 1, 1), (1, 1, 2))]
    offloads = [Cell(*size, zero=zero, offload=True) for size in shapes for zero in (1, 2, 3)]
    return [cell for cell in cells + offloads if is_legal(cell)]


def is_legal(cell: Cell) -> bool:
    """Whether the combination is. A cell whose sizes do not fit is a fault of these lists."""
    setup = cell.setup()
    if refusal(Combination.of(setup.train, setup.layout)):
        return False
    check_layout(setup.model, setup.layout, setup.train)
    return True


def low_precision() -> list[Cell]:
    sizes = [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 1), (2, 2, 2)]
    cells = [
        Cell(*size, zero=zero, precision=precision, offload=offload)
        for precision, size, zero, offload in product(
            ("bf16", "fp16"), sizes, range(4), (False, True)
        )
    ]
    return [cell for cell in cells if is_legal(cell)]


def short_and_long(short: list[Cell], all_: list[Cell]) -> list[Any]:
    return [*short, *long(*(cell for cell in dict.fromkeys(all_) if cell not in short))]


def long(*cells: Cell) -> list[Any]:
    return [pytest.param(cell, marks=pytest.mark.long) for cell in cells]


@cache
def truth(size: int = 8, *, sgd: bool = False) -> dict[str, Any]:
    return train_plainly(size=size, sgd=sgd)


def test_the_plain_loop_trains_as_transformers_gpt2_does() -> None:
    theirs = train_plainly(transformers_gpt2())
    for key in ("losses", "norms", "valid"):
        assert truth()[key] == pytest.approx(theirs[key], rel=RELATIVE), key


@pytest.mark.parametrize("cell", short_and_long(SHORT, grid() + variations()), ids=str)
def test_losses_and_norms_are_those_of_a_plain_loop(worlds: Worlds, cell: Cell) -> None:
    results = worlds[cell.size].run(rank_tasks.train, cell)
    assert all(result == results[0] for result in results), "ranks tell different stories"
    assert results[0]["faults"] == [], "copies differ"
    expected = truth(cell.batch)
    for key in ("losses", "norms", "valid"):
        assert results[0][key] == pytest.approx(expected[key], rel=RELATIVE), key
    assert min(expected["norms"]) > OPTIMIZER.grad_clip, "clipping should be at work"


@pytest.mark.parametrize("cell", short_and_long(BY_SGD, SHORT), ids=str)
def test_merged_weights_are_those_of_a_plain_loop(
    worlds: Worlds, tmp_path: Path, cell: Cell
) -> None:
    worlds[cell.size].run(rank_tasks.train_by_sgd, cell, tmp_path)
    path, _ = newest_checkpoint(tmp_path)
    assert path is not None
    with JoinedCheckpoint(path) as checkpoint:
        for name, wanted in truth(cell.batch, sgd=True)["weights"].items():
            apart = (checkpoint.whole("weight", name) - wanted).abs().max().item()
            assert apart <= WEIGHTS, f"{name}: {apart}"


@pytest.mark.parametrize(
    "cell",
    [
        Cell(precision="bf16", micro=1),
        *long(
            Cell(precision="bf16", pipeline=2, micro=1),
            Cell(precision="bf16", data=2, zero=2, micro=1),
            Cell(precision="bf16", data=2, zero=3, micro=1),
            Cell(tensor=2, zero=0, micro=1),
        ),
    ],
    ids=str,
)
def test_gradients_of_micro_batches_are_added_in_float32(worlds: Worlds, cell: Cell) -> None:
    assert max(worlds[cell.size].run(rank_tasks.accumulate, cell)) < RELATIVE


@pytest.mark.parametrize("cell", short_and_long(LOW, low_precision()), ids=str)
def test_low_precision_stays_within_its_bounds(worlds: Worlds, cell: Cell) -> None:
    results = worlds[cell.size].run(rank_tasks.train, cell)
    assert all(result == results[0] for result in results), "ranks tell different stories"
    assert results[0]["faults"] == [], "copies differ"
    losses, norms = BOUNDS[cell.precision]
    assert results[0]["losses"] == pytest.approx(truth()["losses"], rel=losses)
    assert results[0]["norms"] == pytest.approx(truth()["norms"], rel=norms)


@pytest.mark.parametrize(
    "cell",
    [
        Cell(grad_clip=0.0),
        *long(
            Cell(grad_clip=0.0, pipeline=2, zero=0),
            Cell(grad_clip=0.0, zero=3, data=2),
            Cell(grad_clip=0.0, zero=2, tensor=2),
            Cell(grad_clip=0.0, pipeline=2),
        ),
    ],
    ids=str,
)
def test_without_clipping_the_norm_is_still_told(worlds: Worlds, cell: Cell) -> None:
    results = worlds[cell.size].run(rank_tasks.train, cell)
    expected = train_plainly(grad_clip=0.0)
    for key in ("losses", "norms"):
        assert results[0][key] == pytest.approx(expected[key], rel=RELATIVE), key


def test_stages_hold_what_they_were_dealt_by_cost(worlds: Worlds) -> None:
    wide_head = Cell(pipeline=2, shape=Shape(n_embd=8))
    first, last = worlds[2].run(rank_tasks.layers_of_stages, wide_head)
    blocks = [sorted({int(n.split(".")[1]) for n in names if n[:2] == "h."}) for names in
              (first, last)]  # fmt: skip
    assert blocks == [[0, 1, 2], [3]], "the head costs as much as two blocks"
    assert {"wte.weight", "wpe.weight"} < set(first) and "ln_f.weight" not in first
    assert {"wte.weight", "ln_f.weight"} < set(last) and "wpe.weight" not in last
