"""Which of torch's kernels attention is computed by, on a GPU.

All compute the same within rounding, and none keeps the T x T matrix. Torch chooses by the GPU and
by what each can do; which is the fastest depends on the GPU, head size and version, so that it can
be said (``train.attention``) and measured (tests/benchmarks/train.py).
"""

from typing import Literal

import torch

Kernel = Literal["auto", "flash", "cudnn"]

_GIVEN = torch.compiler.config.cache_key_tag  # the user's own, by TORCH_COMPILE_CACHE_KEY_TAG


def use_attention(kernel: Kernel) -> None:
    """Have ``scaled_dot_product_attention`` use this kernel in this process from now on.

    The plain one stays for what the chosen one cannot do. What the compiler keeps, in memory and on
    disk, has the kernel in it, and would be taken for another one too.
    """
    backends = torch.backends.cuda
    backends.enable_flash_sdp(kernel != "cudnn")
    backends.enable_cudnn_sdp(kernel != "flash")
    backends.enable_mem_efficient_sdp(kernel == "auto")
    key = f"{_GIVEN}attention={kernel}"
    if torch.compiler.config.cache_key_tag not in (_GIVEN, key):
        torch.compiler.reset()
    torch.compiler.config.cache_key_tag = key
