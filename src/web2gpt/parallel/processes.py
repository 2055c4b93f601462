"""Joining the process group: one call for CPU and GPU, one node and many."""

import os
from datetime import timedelta

import deepspeed
import torch
import torch.distributed as dist

from web2gpt.parallel.deepspeed_internals import forbid_compilation

TIMEOUT = timedelta(minutes=30)  # a rank may wait as long for another's checkpoint or start


def join(rank: int, size: int, address: str, *, threads: int) -> torch.device:
    """Become ``rank`` of ``size``, meeting at ``address`` (``tcp://host:port``). Gives the device.

    DeepSpeed's accelerator was chosen when it was imported, by ``DS_ACCELERATOR``: gloo serves
    the CPU, NCCL the GPU numbered ``LOCAL_RANK``.
    """
    torch.set_num_threads(threads)
    forbid_compilation()
    on_gpu = os.environ.get("DS_ACCELERATOR") != "cpu"
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl" if on_gpu else "gloo",
        init_method=address,
        rank=rank,
        world_size=size,
        timeout=TIMEOUT,
        device_id=device if on_gpu else None,
    )
    deepspeed.init_distributed(dist_backend=dist.get_backend(), verbose=False)
    return device
