"""Which of torch's kernels attention is computed by, on a GPU.

All compute the same within rounding, and none keeps the T x T matrix. Torch chooses by the GPU and
by what each can do; which is the fastest depends on the GPU, head size and version, so that it can
be said (``train.attention``) and measured (tests/benchmarks/train.py).
"""

from typing import Literal

import torch

Kernel = Literal["auto", "flash", "cudnn"]


def use_attention(kernel: Kernel) -> None:
    """Have ``scaled_dot_product_attention`` use this kernel in this process from now on.

    The plain one stays for what the chosen one cannot do. What the compiler keeps on disk has the
    kernel in it, and would be taken for another one too, were the kernel not part of its key.
    """
    backends = torch.backends.cuda
    backends.enable_flash_sdp(kernel != "cudnn")
    backends.enable_cudnn_sdp(kernel != "flash")
    backends.enable_mem_efficient_sdp(kernel == "auto")
    torch.compiler.config.cache_key_tag = f"attention={kernel}"
