"""Faults planted in a real run: this folder on PYTHONPATH, and the faults in WEB2GPT_PLANTED.

One or several of, joined by commas: ``nan:STEP`` (a gradient becomes NaN where it is held),
``hang:STEP`` (the last rank never comes to the step), ``spike:STEP`` (the loss is told ten too
high). Python loads this file by itself; it waits for the trainer to be imported.
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
    rank, last = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]) - 1
    take = trainer._take

    def faulty(self, number):
        if number in at.get("hang", ()) and rank == last:
            time.sleep(3600)
        hook = None
        if number in at.get("nan", ()) and BAD_PARAMETER in self.engine.tensors:
            parameter = self.engine.tensors[BAD_PARAMETER].parameter
            hook = parameter.register_hook(lambda gradient: gradient * float("nan"))
        if number in at.get("spike", ()):
            step = self.engine.train_step
            self.engine.train_step = lambda *values: raised(step(*values))
        take(self, number)
        self.engine.__dict__.pop("train_step", None)
        if hook:
            hook.remove()

    trainer._take = faulty


def raised(result):
    from dataclasses import replace

    return replace(result, loss=result.loss + 10)


if "WEB2GPT_PLANTED" in os.environ and "RANK" in os.environ:
    sys.meta_path.insert(0, Planter())
