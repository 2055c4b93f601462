"""The device and the threads that a model runs with when it runs alone."""

import torch

from web2gpt.errors import ConfigError


def prepare_device(wanted: str, threads: int) -> torch.device:
    """``auto``: a GPU if there is one. ``threads`` are those of this process, on the CPU.

    Raises ``ConfigError`` if a GPU is wanted and there is none.
    """
    torch.set_num_threads(threads)
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device: cuda, but torch finds no GPU here; set auto or cpu.")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted)
