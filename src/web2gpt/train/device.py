"""Where a run computes: GPUs when there are enough for its layout, else the CPU or not at all.

Looks without importing torch: the launcher only starts processes.
"""

import importlib.util
import os
import re
import runpy
from pathlib import Path
from typing import Literal

from web2gpt.config.derive import world_equation, world_size
from web2gpt.config.training import Parallel, Train
from web2gpt.errors import ConfigError

Device = Literal["cpu", "cuda"]


def choose_device(train: Train, layout: Parallel, *, nodes: int = 1) -> Device:
    """The device for ``train.device``. The layout is never changed.

    Raises ``ConfigError``, naming the layout that fits, if there are too few GPUs on this node.
    """
    if train.device == "cpu":
        return "cpu"
    needed, found = -(-world_size(layout) // nodes), gpu_count()
    if found >= needed:
        return "cuda"
    if train.device == "auto" and train.cpu_fallback:
        return "cpu"
    node = " a node" if nodes > 1 else ""
    raise ConfigError(
        f"train.device: {world_equation(layout)} needs {needed} GPUs{node}, {found} found; "
        f"{_way_out(layout, found * nodes)}"
    )


def gpu_count() -> int:
    """GPUs that processes started here can use: 0 if torch was built without CUDA."""
    if not _torch_has_cuda():
        return 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([name for name in visible.split(",") if name.strip() not in ("", "-1")])
    devices = Path("/dev").glob("nvidia[0-9]*")
    return len([path for path in devices if re.fullmatch(r"nvidia\d+", path.name)])


def fitting_layout(layout: Parallel, gpus: int) -> Parallel:
    """The layout cut down to at most ``gpus`` processes: fewer replicas, then stages, then less
    tensor parallelism, each by a divisor of what it was."""
    sizes = {"data": layout.data, "pipeline": layout.pipeline, "tensor": layout.tensor}
    for name, size in sizes.items():
        others = world_size(layout.model_copy(update=sizes)) // sizes[name]
        fits = [part for part in range(1, size + 1) if size % part == 0 and part * others <= gpus]
        sizes[name] = fits[-1] if fits else 1
    return layout.model_copy(update=sizes)


def _way_out(layout: Parallel, gpus: int) -> str:
    if gpus == 0:
        return "train.device: cpu runs it on the CPU"
    fitting = fitting_layout(layout, gpus)
    return (
        f"parallel.tensor: {fitting.tensor}, pipeline: {fitting.pipeline}, data: {fitting.data} "
        "fits, and train.device: cpu runs it on the CPU"
    )


def _torch_has_cuda() -> bool:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    version = runpy.run_path(str(Path(spec.origin).with_name("version.py")))
    return version["cuda"] is not None
