"""The learning rate: a function of the step, so that a resumed run needs nothing but its number.

Linear warm-up to ``lr``, then down to ``min_lr`` along half a cosine (Loshchilov & Hutter 2017) or
a line; constant; with the inverse square root of the step (Vaswani et al. 2017); or stable, and
down a line in the last share of the steps (warm-up, stable, decay: Hu et al. 2024).
"""

import math

from web2gpt.config.training import Optimizer, Schedule


def learning_rate(step: int, steps: int, optimizer: Optimizer, schedule: Schedule) -> float:
    """The learning rate of optimizer step ``step``, counted from 1, of ``steps``."""
    decay_steps = schedule.decay_steps or steps
    warmup = warmup_steps(steps, schedule)
    if step <= warmup:
        return optimizer.lr * step / warmup
    if schedule.kind == "constant":
        return optimizer.lr
    if schedule.kind == "inverse_sqrt":
        return max(schedule.min_lr, optimizer.lr * math.sqrt(max(1, warmup) / step))
    begin = warmup
    if schedule.kind == "wsd":
        begin = max(warmup, decay_steps - round(schedule.decay_fraction * decay_steps))
    done = min(1.0, max(0.0, (step - begin) / max(1, decay_steps - begin)))
    share = (1 + math.cos(math.pi * done)) / 2 if schedule.kind == "cosine" else 1 - done
    return schedule.min_lr + (optimizer.lr - schedule.min_lr) * share


def warmup_steps(steps: int, schedule: Schedule) -> int:
    """Steps until the peak: as said, or a share of the decay steps."""
    if schedule.warmup_steps is not None:
        return schedule.warmup_steps
    return round(schedule.warmup_fraction * (schedule.decay_steps or steps))
