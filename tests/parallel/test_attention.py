"""The kernel of attention that is asked for is the one that computes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import torch
from torch.nn.functional import scaled_dot_product_attention
from web2gpt.parallel.attention import use_attention

use_attention(sys.argv[1])
attention = torch.compile(lambda q: scaled_dot_product_attention(q, q, q, is_causal=True))
with torch.profiler.profile() as profile:
    attention(torch.randn(1, 2, 32, 16))
print(*{event.key for event in profile.key_averages()})
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler here")
def test_a_compiled_kernel_is_not_taken_from_the_cache_of_a_run_with_another(
    tmp_path: Path,
) -> None:
    # On a CPU ``cudnn`` leaves the plain kernel alone, and the others flash attention's.
    for kernel, flash in (("auto", True), ("cudnn", False)):
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, kernel],
            env=os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert ("_scaled_dot_product_flash_attention_for_cpu" in ran.stdout) is flash, kernel
