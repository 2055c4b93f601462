"""What else one would train GPT-2 with: nanoGPT's model and loop; Hugging Face's in that loop.

The loop is that of nanoGPT's train.py (commit 3adf61e): autocast, accumulation, the next
micro-batch fetched while the present one goes forward, clipping, torch's fused AdamW, the loss
read each step. The initial weights are ours, so that losses can be compared step by step.
"""

import importlib.util
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from train_case import BETAS, CLIP, SEED, WEIGHT_DECAY, Case, Windows, learning_rate, stage_of

from web2gpt.checkpoint.huggingface import PREFIX, turned
from web2gpt.model.initialization import initial_tensor

MULTIPLE = 128  # the vocabulary is padded to, as ours
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


def nanogpt(case: Case, windows: Windows) -> Callable[[int], float]:
    spec = importlib.util.spec_from_file_location("nanogpt_model", Path(case.nanogpt) / "model.py")
    assert spec is not None and spec.loader is not None, f"{case.nanogpt}: no model.py"
    module = importlib.util.module_from_spec(spec)
    sys.modules["nanogpt_model"] = module
    spec.loader.exec_module(module)
    torch.manual_seed(SEED)
    config = module.GPTConfig(
        block_size=case.shape.n_positions,
        vocab_size=padded(case),
        n_layer=case.shape.n_layer,
        n_head=case.shape.n_head,
        n_embd=case.shape.n_embd,
        dropout=case.dropout,
        bias=True,
    )
    model = module.GPT(config).to(case.device)
    start_as_ours(model, case)
    optimizer = model.configure_optimizers(WEIGHT_DECAY, 1e-4, BETAS, case.device)

    def loss_of(called: Any, x: Tensor, y: Tensor) -> Tensor:
        loss: Tensor = called(x, y)[1]
        return loss

    return loop(case, windows, model, optimizer, loss_of)


def huggingface(case: Case, windows: Windows) -> Callable[[int], float]:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(SEED)
    config = GPT2Config(
        vocab_size=padded(case),
        n_positions=case.shape.n_positions,
        n_layer=case.shape.n_layer,
        n_head=case.shape.n_head,
        n_embd=case.shape.n_embd,
        use_cache=False,
        attn_implementation="sdpa",
        **dict.fromkeys(("embd_pdrop", "attn_pdrop", "resid_pdrop"), case.dropout),
    )
    model = GPT2LMHeadModel(config).to(case.device)
    start_as_ours(model, case, turned)
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": WEIGHT_DECAY},
            {"params": vectors, "weight_decay": 0.0},
        ],
        betas=BETAS,
        fused=case.device == "cuda",
    )

    def loss_of(called: Any, x: Tensor, y: Tensor) -> Tensor:
        logits = called(x).logits
        return F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))

    return loop(case, windows, model, optimizer, loss_of)


@torch.no_grad()
def start_as_ours(
    model: nn.Module,
    case: Case,
    turn: Callable[[str, Tensor], Tensor] = lambda name, tensor: tensor,
) -> None:
    """Give the rival's parameters our initial values. ``turn``: between its orientation and ours,
    by our name."""
    settings = stage_of(case).model
    for name, parameter in model.named_parameters():
        ours = name.removeprefix(PREFIX)
        shape = tuple(turn(ours, parameter).shape)
        parameter.copy_(turn(ours, initial_tensor(ours, shape, settings, SEED)))


class WithLoss(nn.Module):
    """Model and loss in one module, so that they are compiled together."""

    def __init__(self, model: nn.Module, loss_of: Callable[[Any, Tensor, Tensor], Tensor]):
        super().__init__()
        self.model, self.loss_of = model, loss_of

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.loss_of(self.model, x, y)


def loop(
    case: Case,
    windows: Windows,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_of: Callable[[Any, Tensor, Tensor], Tensor],
) -> Callable[[int], float]:
    """nanoGPT's loop around a model."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    forward: Any = WithLoss(model, loss_of)
    if case.compile:
        forward = torch.compile(forward)
    accumulation = case.batch // case.micro_batch_size
    position = 0

    def fetch() -> tuple[Tensor, Tensor]:
        nonlocal position
        rows = torch.from_numpy(windows.batch(position, case.micro_batch_size))
        position += case.micro_batch_size
        x, y = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
        if case.device == "cuda":
            x, y = (
                x.pin_memory().to("cuda", non_blocking=True),
                y.pin_memory().to("cuda", non_blocking=True),
            )
        return x, y

    x, y = fetch()

    def step(number: int) -> float:
        nonlocal x, y
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(case, number)
        total = torch.zeros((), device=case.device)
        for _ in range(accumulation):
            with precision(case):
                loss = forward(x, y) / accumulation
            x, y = fetch()
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(total)

    return step


def precision(case: Case) -> AbstractContextManager[Any]:
    if case.precision == "fp32":
        return nullcontext()
    return torch.autocast(case.device, DTYPES[case.precision])


def padded(case: Case) -> int:
    return -(-case.vocab_size // MULTIPLE) * MULTIPLE


RIVALS = {"nanogpt": nanogpt, "huggingface": huggingface}
