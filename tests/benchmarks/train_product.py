"""What the machine can do: the rate of matrix products, and of a copy in its memory."""

import statistics
from typing import Any

from train_case import Case, EventClock, WallClock, machine


def product(case: Case) -> dict[str, Any]:
    """TFLOP/s of a large matrix product, and of those that the model of this size is made of."""
    import torch

    on_gpu = case.device == "cuda"
    width, rows = case.shape.n_embd, case.micro_batch_size * case.shape.n_positions
    large = 8192 if on_gpu else 256
    padded = -(-case.vocab_size // 128) * 128
    shapes = [(large, large, large)]
    shapes += [(rows, width, out) for out in (3 * width, width, 4 * width, padded)]
    shapes += [(rows, 4 * width, width)]
    dtype = torch.bfloat16 if on_gpu else torch.float32
    found = {}
    for n, inner, out in shapes:
        a = torch.randn(n, inner, device=case.device, dtype=dtype)
        b = torch.randn(inner, out, device=case.device, dtype=dtype)
        for _ in range(3):
            a @ b
        clock = EventClock() if on_gpu else WallClock()
        clock.mark()
        for _ in range(20 if on_gpu else 2):
            a @ b
            clock.mark()
        found[f"{n}x{inner}x{out}"] = 2e-12 * n * inner * out / statistics.median(clock.seconds())
    return {
        "tflops": next(iter(found.values())),
        "products": found,
        "bytes_per_second": copy_rate(case.device),
        "machine": machine(case.device),
    }


def copy_rate(device: str) -> float:
    """Bytes read and written a second by a copy in the device's memory."""
    import torch

    source = torch.empty(1 << (31 if device == "cuda" else 24), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    clock = EventClock() if device == "cuda" else WallClock()
    for _ in range(10):
        target.copy_(source)
        clock.mark()
    return 2 * source.numel() / statistics.median(clock.seconds())
