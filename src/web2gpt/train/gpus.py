"""What is known of GPUs: memory, and peak speed in 16 bits without sparsity, from data sheets."""

import shutil
import subprocess

PEAK_TFLOPS = (  # dense matrix products in bf16 or fp16 with float32 sums
    ("B200", 2250.0),
    ("GH200", 989.0),
    ("H200", 989.0),
    ("H100 PCIe", 756.0),
    ("H100", 989.0),
    ("A100", 312.0),
    ("L40S", 362.0),
    ("A40", 150.0),
    ("A10", 125.0),
    ("V100", 125.0),
    ("RTX 4090", 165.0),
    ("RTX 3090", 71.0),
    ("T4", 65.0),
)


def peak_tflops(name: str) -> float | None:
    """The peak of a GPU, None if it is not known by this name."""
    return next((peak for known, peak in PEAK_TFLOPS if known in name), None)


def smallest_gpu_bytes() -> int | None:
    """Memory of the smallest GPU of this machine by nvidia-smi; None if there is no such."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    query = [tool, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    answer = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
    sizes = [int(line) << 20 for line in answer.stdout.split() if line.isdigit()]
    return min(sizes, default=None)
