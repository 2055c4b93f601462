"""Joining the process group: one way for CPU and GPU, one node and many."""

import os
import time
from datetime import timedelta
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store, TCPStore  # torch.distributed hides them from mypy

from web2gpt.io.atomic import write_text
from web2gpt.parallel.deepspeed_internals import forbid_compilation, import_muon_uncompiled

TIMEOUT = timedelta(minutes=30)  # a rank may wait as long for another's checkpoint or start
LOCAL = "127.0.0.1"


def meeting_by_file(path: Path, rank: int, size: int) -> Store:
    """Processes of one node meet on loopback, at a port that rank 0 takes and writes to ``path``.

    ``path`` must not exist from before. No port is chosen ahead, so none can be taken meanwhile.
    """
    if rank == 0:
        store = TCPStore(LOCAL, 0, size, is_master=True, wait_for_workers=False, timeout=TIMEOUT)
        write_text(path, str(store.port))
        return store
    start = time.monotonic()
    while not path.exists():
        if time.monotonic() - start > TIMEOUT.total_seconds():
            raise TimeoutError(f"{path}: rank 0 did not come")
        time.sleep(0.02)
    return TCPStore(LOCAL, int(path.read_text()), size, is_master=False, timeout=TIMEOUT)


def meeting_by_address(address: str, rank: int, size: int) -> Store:
    """Processes of several nodes meet at ``host:port`` of the first."""
    host, _, port = address.rpartition(":")
    return TCPStore(host, int(port), size, is_master=rank == 0, timeout=TIMEOUT)


def own_device() -> torch.device:
    """This rank's device, torch's current one from now on. It was chosen when DeepSpeed was
    imported, by ``DS_ACCELERATOR``: the CPU, or the GPU numbered ``LOCAL_RANK``."""
    if os.environ.get("DS_ACCELERATOR") == "cpu":
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device


def join(store: Store, rank: int, size: int, *, threads: int) -> torch.device:
    """Become ``rank`` of ``size``. Gives the device to compute on: CPUs talk over gloo, GPUs over
    NCCL."""
    torch.set_num_threads(threads)
    forbid_compilation()
    import_muon_uncompiled()
    device = own_device()
    on_gpu = device.type == "cuda"
    dist.init_process_group(
        "nccl" if on_gpu else "gloo",
        store=store,
        rank=rank,
        world_size=size,
        timeout=TIMEOUT,
        device_id=device if on_gpu else None,
    )
    deepspeed.init_distributed(dist_backend=dist.get_backend(), verbose=False)
    return device
