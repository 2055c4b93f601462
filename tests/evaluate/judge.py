"""transformers' verdict on a stream of tokens."""

from pathlib import Path

import torch
from transformers import GPT2LMHeadModel

WINDOW = 16


def by_transformers(model: Path, stream: list[int], stride: int = WINDOW) -> tuple[float, int]:
    """Summed loss and number of predicted tokens, window by window."""
    theirs = GPT2LMHeadModel.from_pretrained(model).eval()
    loss, count, done = 0.0, 0, 1
    for start in range(0, len(stream) - 1, stride):
        piece = torch.tensor([stream[start : start + WINDOW + 1]])
        new = start + piece.shape[1] - done
        if new <= 0:
            break
        labels = piece[:, 1:].clone()
        labels[:, : labels.shape[1] - new] = -100
        with torch.no_grad():
            logits = theirs(piece[:, :-1]).logits[0]
        loss += torch.nn.functional.cross_entropy(logits, labels[0], reduction="sum").item()
        count, done = count + new, done + new
    return loss, count
