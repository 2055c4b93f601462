"""Speed and memory of a run, as its log lines have them.

TFLOP/s count the operations of ``train.counts`` (attention dense, recomputation not), on one
process; MFU is their share of the GPU's peak, the denominator that is named beside it.
"""

import resource
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from web2gpt.config.derive import world_size
from web2gpt.train.counts import flops_per_token
from web2gpt.train.gpus import peak_tflops
from web2gpt.train.job import Job

GIB = 1 << 30


@dataclass(frozen=True)
class Speed:
    """Of some steps. ``mfu`` is None where the peak is not known."""

    tokens_per_second: float
    tflops: float
    mfu: float | None


class Pace:
    """Counts time from one look to the next; ``pause`` leaves out what is no step."""

    def __init__(self, job: Job, device: torch.device):
        self._flops = flops_per_token(job.stage.model, job.vocab_size)
        self._processes = world_size(job.stage.parallel)
        self.peak = job.stage.train.peak_tflops
        if self.peak is None and device.type == "cuda":
            self.peak = peak_tflops(torch.cuda.get_device_name(device))
        self._since = time.perf_counter()

    def restart(self) -> None:
        """Count from now on."""
        self._since = time.perf_counter()

    def take(self) -> float:
        """Seconds since the last look."""
        now = time.perf_counter()
        passed, self._since = now - self._since, now
        return passed

    def speed(self, tokens: int, seconds: float) -> Speed:
        """Of ``tokens`` of the global batch in ``seconds``."""
        rate = tokens / seconds if seconds else 0.0
        tflops = rate * self._flops / self._processes / 1e12
        return Speed(rate, tflops, tflops / self.peak if self.peak else None)


def memory_gib(device: torch.device) -> tuple[float, float]:
    """Memory of this process now, and at its peak: of the GPU, else of the CPU."""
    if device.type == "cuda":
        now, peak = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
        return now / GIB, peak / GIB
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    used = pages * resource.getpagesize() / GIB
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    return used, max(used, highest)  # the kernel counts the two apart, and the peak is late
