"""GPT-2 one token at a time, with the keys and values of what came before kept.

Slots hold texts of unequal length: slot b's token at position t stands at ``[b, :, t]``, and the
mask lets a query see positions up to its own. Invariant: the logits are those of ``GPT2.forward``
on the slot's whole context. Layers and their order are taken from the model itself.
"""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from web2gpt.config.training import Model
from web2gpt.model.gpt2 import GPT2, Block
from web2gpt.sample.graphs import StepGraphs
from web2gpt.sample.packed import projection


class CachedGPT2:
    """A model with room for ``slots`` texts of up to ``n_positions`` tokens each."""

    def __init__(self, model: GPT2, sizes: Model, slots: int):
        self.model = model
        self.blocks = cast(list[Block], list(model.h))
        self.window, self.slots = sizes.n_positions, slots
        self.device = model.embedding.wte.weight.device
        head_size = sizes.n_embd // sizes.n_head
        # layer, keys or values, slot, head, position, channel: (n_layer, 2, B, nh, W, hs)
        self.cache = torch.zeros(
            sizes.n_layer, 2, slots, sizes.n_head, self.window, head_size,
            device=self.device, dtype=model.embedding.wte.weight.dtype,
        )  # fmt: skip
        self._logits = projection(model)
        on_gpu = self.device.type == "cuda"
        self._graphs = StepGraphs(slots, self.window) if on_gpu else None

    def prefill(self, contexts: dict[int, list[int]]) -> None:
        """Put contexts (none empty, none longer than the window) into slots, from position 0."""
        if not contexts:
            return
        slots = torch.tensor(list(contexts), device=self.device)
        longest = max(map(len, contexts.values()))
        rows = [tokens + [0] * (longest - len(tokens)) for tokens in contexts.values()]
        # What stands right of a text is seen by nothing in it, and overwritten as the text grows.
        x = self.model.embedding(torch.tensor(rows, device=self.device))  # (R, T, C)
        for layer, block in enumerate(self.blocks):
            q, k, v = block.attn.split(block.ln_1(x))
            self.cache[layer, :, slots, :, :longest] = torch.stack((k, v))
            x = x + block.attn.join(block.attn.core(q, k, v))
            x = x + block.mlp(block.ln_2(x))

    def step(self, tokens: list[int], positions: list[int]) -> Tensor:
        """Logits (B, V), float32, after one more token in each of the first B slots, at the
        position given for it. On a GPU they stand until the next step."""
        new, places = (torch.tensor(given, device=self.device) for given in (tokens, positions))
        if self._graphs is not None:
            return self._graphs.run(self._step, new, places, max(positions) + 1)
        return self._step(new, places, max(positions) + 1)

    def _step(self, tokens: Tensor, places: Tensor, seen: int) -> Tensor:
        kept = self.cache[:, :, : len(tokens)]
        written = places.view(-1, 1, 1, 1).expand(2, -1, kept.size(3), 1, kept.size(5))
        mask = (torch.arange(seen, device=self.device) <= places[:, None])[:, None, None]
        embedding = self.model.embedding
        x = embedding.wte(tokens) + embedding.wpe(places)  # (B, C)
        x = x[:, None]  # (B, 1, C)
        for block, kept_here in zip(self.blocks, kept, strict=True):
            q, k, v = block.attn.split(block.ln_1(x))  # each (B, nh, 1, hs)
            kept_here.scatter_(3, written, torch.stack((k, v)))
            keys, values = kept_here[:, :, :, :seen]  # each (B, nh, seen, hs)
            y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
            x = x + block.attn.join(y)
            x = x + block.mlp(block.ln_2(x))
        logits: Tensor = self._logits(self.model.head.ln_f(x[:, 0]))
        return logits.float()

    def keep(self, slots: list[int]) -> None:
        """Go on with these slots only, renumbered in this order."""
        self.cache[:, :, : len(slots)] = self.cache[:, :, slots]
