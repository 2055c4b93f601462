"""torch.compile, where it pays: each block by itself, and the two passes of the loss.

What is compiled is plain: a block's mathematics, with what its ranks say to each other as opaque
operations (``parallel.communication``). Seeding, recomputation, DeepSpeed's engine and its pipeline
stand around it, and see no difference. All blocks are alike and share one compiled graph, so that
compiling takes the same time for any depth.

Under ZeRO 3 a block's parameters are gathered before its forward and backward, so that its graph
sees whole ones. What it keeps between the two is the parameters themselves, no views of them, so
that DeepSpeed can partition them again where the backward pass is far away.

Left as they are: the embedding and the head's matrix product. A GPU needs Triton, which needs a C
compiler and Python's headers to load what it made; none of them is needed to train.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist

from web2gpt.errors import ConfigError
from web2gpt.model.gpt2 import Block
from web2gpt.parallel.cross_entropy import COMPILED_BLOCK, EAGER, Kernels
from web2gpt.parallel.cross_entropy import gradient_in_place as gradient
from web2gpt.parallel.cross_entropy import row_statistics as statistics

Wanted = Literal["auto", "on", "off"]

BACKEND = "inductor"
COMPILING = "blocks and loss are compiled: the first step takes a minute or so longer"


@dataclass(frozen=True)
class Decision:
    """Whether to compile; ``note`` is what the user should know about it."""

    on: bool
    note: str = ""


def decide(wanted: Wanted, device: torch.device) -> Decision:
    """``auto``: on a GPU on which it can be done, tried on a small function. Collective.

    Raises ``ConfigError`` if it is ``on``, and cannot be done.
    """
    if wanted == "off" or (wanted == "auto" and device.type != "cuda"):
        return Decision(on=False)
    lack = missing(device) or failure(device)
    if wanted == "on":
        if lack:
            raise ConfigError(f"train.compile: on, but {lack}; set it to auto or off")
        return Decision(on=True, note=COMPILING)
    everyone = torch.tensor(int(not lack), device=device)
    dist.all_reduce(everyone, op=dist.ReduceOp.MIN)  # ranks compute alike, or copies drift apart
    if everyone:
        return Decision(on=True, note=COMPILING)
    return Decision(on=False, note=f"not compiled: {lack or 'another rank cannot'}")


def failure(device: torch.device) -> str:
    """Why a small function cannot be compiled and run; empty if it can."""
    try:
        _compiled(lambda x: x.exp() + 1)(torch.zeros(64, device=device))
    except Exception as error:  # noqa: BLE001 - whatever it is, the user is told
        reason = str(error).strip() or type(error).__name__
        return f"torch.compile fails here: {reason.splitlines()[0][:200]}"
    return ""


def missing(device: torch.device) -> str:
    """What torch.compile would need and cannot find here; empty if it finds all."""
    named = os.environ.get("CXX" if device.type == "cpu" else "CC", "cc")
    if not any(shutil.which(name) for name in (named, "gcc", "g++", "clang")):
        return "there is no C compiler here"
    if device.type == "cuda" and importlib.util.find_spec("triton") is None:
        return "Triton is not installed"
    return ""


def compile_block(block: Block, *, whole: bool = True) -> None:
    """Compile a block's forward, or its MLP's alone where attention must stay as it is."""
    part = block if whole else block.mlp
    part.forward = _compiled(part.forward)  # type: ignore[method-assign]  # the same call


def loss_kernels(*, compiled: bool) -> Kernels:
    """The passes over the logits, compiled or not."""
    if not compiled:
        return EAGER
    return Kernels(_compiled(statistics), _compiled(gradient), COMPILED_BLOCK)


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    options: dict[str, Any] | None = None
    if BACKEND == "inductor":
        from web2gpt.parallel.inductor import OPTIONS  # takes seconds

        options = OPTIONS
    result: Callable[..., Any] = torch.compile(
        function, dynamic=False, fullgraph=True, backend=BACKEND, options=options
    )
    return result
