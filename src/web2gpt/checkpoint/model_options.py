"""How a command is told which model to open: options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

ModelFolder = Annotated[
    Path, typer.Option(help="a Hugging Face GPT-2 folder, or a training checkpoint")
]
CheckpointTokenizer = Annotated[
    Path | None, typer.Option(help="tokenizer.json, if the model is a checkpoint")
]
