"""Stands in for Weights & Biases: what it is called with goes to the file $WANDB_CALLS."""

import json
import os
from pathlib import Path


def init(**given):
    _note("init", given)
    return Run()


class Run:
    def log(self, row, step):
        _note("log", {**row, "step": step})

    def finish(self):
        _note("finish", {})


def _note(call, values):
    with Path(os.environ["WANDB_CALLS"]).open("a") as file:
        file.write(json.dumps([call, values]) + "\n")
