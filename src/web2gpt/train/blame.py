"""Which parameter is the first that is no number: looked for while steps go wrong.

Hooks on the gradients run only from the first bad step to the next good one; they cost nothing
before. Bad weights spread forward, so the first of them in the model's order is to blame; bad
gradients spread backward from the loss, so of them it is the last.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from web2gpt.parallel.parameters import LocalTensor


class Blame:
    """Watches a rank's parameters."""

    def __init__(self, tensors: Mapping[str, LocalTensor]):
        self._tensors = tensors
        self._hooks: list[Any] = []
        self._bad: dict[str, Tensor] = {}

    def watch(self) -> None:
        """From now on, remember gradients that are not finite."""
        if self._hooks:
            return
        for name, local in self._tensors.items():
            parameter: Any = local.parameter
            self._hooks.append(parameter.register_hook(self._hook(name)))

    def forget(self) -> None:
        """A step went well."""
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._bad = [], {}

    def verdict(self) -> str:
        """The first bad parameter over all ranks, in words. Collective."""
        own = [("weight", name) for name, local in self._tensors.items() if _is_bad(local)]
        own += [("gradient", name) for name in self._tensors if self._is_flagged(name)]
        everyone: list[list[tuple[str, str]]] = [[]] * dist.get_world_size()
        dist.all_gather_object(everyone, own)
        found = [entry for entries in everyone for entry in entries]
        for kind in ("weight", "gradient"):
            names = list(dict.fromkeys(name for what, name in found if what == kind))
            if names:
                first = names[0] if kind == "weight" else names[-1]
                return f"the first bad parameter is {first} (its {kind}; {len(names)} in all)"
        return "no parameter's weights or gradient are bad by themselves"

    def _is_flagged(self, name: str) -> bool:
        return name in self._bad and bool(self._bad[name])

    def _hook(self, name: str) -> Any:
        def look(gradient: Tensor) -> None:
            bad = ~torch.isfinite(gradient).all()
            self._bad[name] = self._bad[name] | bad if name in self._bad else bad

        return look


def _is_bad(local: LocalTensor) -> bool:
    return not bool(torch.isfinite(local.parameter.detach()).all())
