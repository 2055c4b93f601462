"""Where a step's time goes on the GPU, by kind of kernel; what no kernel covers is idle.

``floors`` says what each kind would take at the rates of a large matrix product and of a copy.
Kinds are told by kernels' names; the longest kernels are listed too, so that a name that was not
foreseen (it counts as ``other``) can be seen.
"""

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from train_case import Case

KINDS = (
    ("attention", r"flash|fmha|attention|sdpa|mha|_bwd_dot|_bwd_convert"),
    ("communication", r"nccl|all_?reduce|allgather|reducescatter"),
    ("matrix products", r"gemm|nvjet|cutlass|xmma|cublas|wgmma|splitK|::addmm|::mm|::bmm|linear"),
    ("optimizer", r"adam|multi_tensor|foreach"),
    ("loss", r"amax|softmax|logsumexp|nll|cross_entropy|triton_.*_eq_.*exp|triton_.*exp.*_eq_"),
    ("embedding", r"embedding|index_put|index_select"),
    ("norms, GELU, sums (compiled)", r"triton_"),
    ("copies", r"memcpy|memset|copy|::to|_to_"),
    ("elementwise", r"elementwise|vectorized|reduce|layer_norm|gelu|dropout|::add|::mul|::div"),
)
LONGEST = 60


def breakdown(step: Callable[[], Any], device: str) -> dict[str, Any]:
    """Milliseconds of one more step by kind; on a CPU, of operators' own times."""
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")
    _wait(device)
    with profile(activities=activities, acc_events=True) as profiler:
        began = time.perf_counter()
        step()
        _wait(device)
        wall = (time.perf_counter() - began) * 1e3
    spans = _kernels(profiler) if device == "cuda" else _operators(profiler)
    kinds: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for name, start, end in spans:
        kinds[kind_of(name)] += (end - start) / 1e3
        names[name[:160]] += (end - start) / 1e3
    if device == "cuda":
        kinds["idle"] = max(0.0, wall - _covered(spans) / 1e3)
    return {
        "step_ms": wall,
        "milliseconds": dict(kinds.most_common()),
        "longest": dict(names.most_common(LONGEST)),
        "kernels": len(spans),
    }


def floors(case: Case, tflops: float, bytes_per_second: float) -> dict[str, float]:
    """Milliseconds of a step by kind, at measured rates.

    Products: 6 (12 L h² + V h) operations a token; attention: those of the causal half. Bytes: 6 a
    logit; 96 h a block and token for norms, GELU and sums, fused (34 forward, 62 back); 50 a
    parameter and step for norm, clipping, AdamW and cast; 10 to add up a micro-batch's gradient.
    """
    layers, h, positions = case.shape.n_layer, case.shape.n_embd, case.shape.n_positions
    tokens = case.batch * positions / case.world_size
    matrices = 12 * layers * h * h + case.vocab_size * h
    operations = {
        "matrix products": 6 * matrices * tokens,
        "attention": 6 * layers * h * positions * tokens,
    }
    micro_batches = tokens / positions / case.micro_batch_size
    traffic = {
        "loss": 6 * case.vocab_size * tokens,
        "norms, GELU, sums": 96 * h * layers * tokens,
        "optimizer": 50 * matrices,
        "gradients added up": 10 * matrices * micro_batches,
    }
    found = {kind: count / (tflops * 1e9) for kind, count in operations.items()}
    return found | {kind: count / bytes_per_second * 1e3 for kind, count in traffic.items()}


def kind_of(name: str) -> str:
    return next((kind for kind, words in KINDS if re.search(words, name, re.IGNORECASE)), "other")


Span = tuple[str, float, float]  # name, start and end in microseconds


def _kernels(profiler: Any) -> list[Span]:
    return [
        (event.name, event.time_range.start, event.time_range.end)
        for event in profiler.events()
        if event.device_type == torch.autograd.DeviceType.CUDA and not event.is_user_annotation
    ]


def _operators(profiler: Any) -> list[Span]:
    return [(event.name, 0.0, event.self_cpu_time_total) for event in profiler.events()]


def _covered(spans: list[Span]) -> float:
    """Microseconds in which any kernel ran."""
    total, until = 0.0, float("-inf")
    for _, start, end in sorted(spans, key=lambda span: span[1]):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
