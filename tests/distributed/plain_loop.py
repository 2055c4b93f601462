"""The independent truth: torch alone, one process, the whole batch at once."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from cells import MODEL, OPTIMIZER, SEED, SGD_LR, STEPS, TINY, VOCAB, Shape, batch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from web2gpt.model.gpt2 import GPT2
from web2gpt.model.initialization import initialize

TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


def ours(shape: Shape = TINY) -> GPT2:
    gpt = GPT2(shape.model, shape.vocab)
    initialize(gpt.tensors(), shape.model, SEED)
    return gpt


def transformers_gpt2() -> GPT2LMHeadModel:
    """Hugging Face's model with the weights of ``ours``."""
    gpt = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCAB,
            n_layer=MODEL.n_layer,
            n_embd=MODEL.n_embd,
            n_head=MODEL.n_head,
            n_positions=MODEL.n_positions,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            resid_pdrop=0.0,
        )
    )
    theirs = gpt.transformer.state_dict()
    with torch.no_grad():
        for name, value in ours().tensors().items():
            theirs[name].copy_(value.t() if name.endswith(TRANSPOSED) else value)
    return gpt


def train_plainly(
    gpt: nn.Module | None = None,
    *,
    size: int = 8,
    sgd: bool = False,
    shape: Shape = TINY,
    grad_clip: float = OPTIMIZER.grad_clip,
) -> dict[str, Any]:
    """Losses, norms and validation loss, and the weights in the end."""
    torch.set_num_threads(1)
    gpt = gpt or ours(shape)
    sizes = {"vocab": shape.vocab, "positions": shape.n_positions}
    optimizer = plain_sgd(gpt) if sgd else plain_adamw(gpt)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(gpt, batch(step, size, **sizes))
        loss.backward()
        largest = grad_clip or math.inf
        norms.append(float(nn.utils.clip_grad_norm_(gpt.parameters(), largest)))
        optimizer.step()
        losses.append(float(loss.detach()))
    with torch.no_grad():
        valid = float(loss_of(gpt, batch(99, size, **sizes)))
    weights = {
        name: value.detach().clone()
        for name, value in (gpt.tensors() if isinstance(gpt, GPT2) else {}).items()
    }
    return {"losses": losses, "norms": norms, "valid": valid, "weights": weights}


def loss_of(gpt: nn.Module, rows: Tensor) -> Tensor:
    logits = gpt(rows[:, :-1])
    logits = logits if isinstance(logits, Tensor) else logits.logits
    return F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


def plain_adamw(gpt: nn.Module) -> torch.optim.Optimizer:
    parameters = list(gpt.parameters())
    return torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.dim() >= 2]},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ],
        lr=OPTIMIZER.lr,
        betas=(OPTIMIZER.beta1, OPTIMIZER.beta2),
        eps=OPTIMIZER.eps,
        weight_decay=OPTIMIZER.weight_decay,
    )


def plain_sgd(gpt: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(gpt.parameters(), lr=SGD_LR)
