"""The command evaluate."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.config.flags import with_settings
from web2gpt.config.outputs import Evaluate


@with_settings(Evaluate)
def evaluate(
    *,
    model: Annotated[Path, typer.Option(help="folder of a Hugging Face GPT-2 model")],
    index: Annotated[Path, typer.Option(help="index/manifest.json of the run")],
    output: Annotated[Path, typer.Option(help="evaluation.json to write")],
    work: Annotated[Path, typer.Option(help="work folder")],
    settings: Evaluate,
) -> None:
    """Measure loss, perplexity and bits per byte on a held-out part of the index."""
    from web2gpt.evaluate.stage import EvaluateFiles, evaluate_model

    evaluate_model(EvaluateFiles(model, index, output, work), settings)
