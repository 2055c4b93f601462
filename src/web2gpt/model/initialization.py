"""Initial weights, the same under every layout.

Invariant: a tensor's initial values are a function of the seed, its global name and its global
shape alone; a rank that holds a slice makes the whole tensor and cuts its slice. NumPy's Philox
counter generator draws them, so they do not depend on device, threads or instruction set.

Method: Radford et al. 2019, and the code OpenAI released with it: normal(0, initializer_range),
the projections that end in a residual sum scaled down by sqrt(2 n_layer), biases 0, norms 1.
"""

from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor, nn

from web2gpt.config.training import Model


def initial_tensor(name: str, shape: tuple[int, ...], model: Model, seed: int) -> Tensor:
    """The whole initial tensor of the parameter with this global name and shape, in float32."""
    if name.endswith(".bias"):
        return torch.zeros(shape)
    if ".ln_" in f".{name}":
        return torch.ones(shape)
    spread = model.initializer_range
    if name.endswith(".c_proj.weight"):
        spread /= (2 * model.n_layer) ** 0.5
    values = _generator(name, seed).standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(values).mul_(spread)


@torch.no_grad()
def initialize(tensors: dict[str, nn.Parameter], model: Model, seed: int) -> None:
    """Fill whole parameters, given under their global names, with their initial values."""
    for name, parameter in tensors.items():
        parameter.copy_(initial_tensor(name, tuple(parameter.shape), model, seed))


def _generator(name: str, seed: int) -> np.random.Generator:
    digest = blake2b(f"{seed}\0{name}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))
