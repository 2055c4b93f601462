"""Faults planted in a real run: this folder on PYTHONPATH, and the faults in WEB2GPT_PLANTED.

One or several of, joined by commas: ``nan:STEP`` (a gradient becomes NaN where it is held),
``hang:STEP`` (the last rank never comes to the step), ``raise:STEP`` (it fails there),
``spike:STEP`` (the loss is told ten too high), ``slow:STEP`` (its checkpoint takes a second to
write). Python loads this file by itself; it waits for the trainer to be imported.
"""

import os
import sys
import time
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

TARGET = "web2gpt.train.trainer"
BAD_PARAMETER = "h.1.mlp.c_fc.weight"


class Planter(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != TARGET:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            plant(module.Trainer)

        spec.loader.exec_module = exec_module
        return spec


def plant(trainer):
    faults = [text.split(":") for text in os.environ["WEB2GPT_PLANTED"].split(",")]
    at = {kind: {int(step) for name, step in faults if name == kind} for kind, _ in faults}
    slow_down(at.get("slow", ()))
    rank, last = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]) - 1
    take = trainer._take

    def faulty(self, number):
        if number in at.get("hang", ()) and rank == last:
            time.sleep(3600)
        if number in at.get("raise", ()) and rank == last:
            raise RuntimeError("planted")
        spoil(self, number in at.get("nan", ()))
        if number in at.get("spike", ()):
            step = self.engine.train_step
            self.engine.train_step = lambda *values: raised(step(*values))
        take(self, number)
        self.engine.__dict__.pop("train_step", None)

    trainer._take = faulty


def slow_down(steps):
    from web2gpt.checkpoint.save import Draft

    write = Draft.write

    def slowly(self):
        time.sleep(self._state.step in steps)
        return write(self)

    Draft.write = slowly


def spoil(trainer, now):
    """Make the gradient NaN ``now``; hooked in before any that the trainer itself hooks in."""
    first = not hasattr(trainer, "spoilt")
    trainer.spoilt = now
    if first and BAD_PARAMETER in trainer.engine.tensors:
        parameter = trainer.engine.tensors[BAD_PARAMETER].parameter
        parameter.register_hook(lambda grad: grad * float("nan") if trainer.spoilt else grad)


def raised(result):
    from dataclasses import replace

    return replace(result, loss=result.loss + 10)


if "WEB2GPT_PLANTED" in os.environ and "RANK" in os.environ:
    sys.meta_path.insert(0, Planter())
