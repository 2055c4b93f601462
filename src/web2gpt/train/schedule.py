"""The learning rate: a function of the step, so that a resumed run needs nothing but its number.

Linear warm-up to ``lr``, then down to ``min_lr`` along half a cosine or a line, or constant
(Loshchilov & Hutter 2017; Brown et al. 2020).
"""

import math

from web2gpt.config.training import Optimizer, Schedule


def learning_rate(step: int, steps: int, optimizer: Optimizer, schedule: Schedule) -> float:
    """The learning rate of optimizer step ``step``, counted from 1, of ``steps``."""
    decay_steps = schedule.decay_steps or steps
    warmup_steps = round(schedule.warmup_fraction * decay_steps)
    if step <= warmup_steps:
        return optimizer.lr * step / warmup_steps
    if schedule.kind == "constant":
        return optimizer.lr
    done = min(1.0, (step - warmup_steps) / max(1, decay_steps - warmup_steps))
    share = 1 - done if schedule.kind == "linear" else (1 + math.cos(math.pi * done)) / 2
    return schedule.min_lr + (optimizer.lr - schedule.min_lr) * share
