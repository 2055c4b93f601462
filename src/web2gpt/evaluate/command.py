"""The command evaluate."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.checkpoint.model_options import CheckpointTokenizer, ModelFolder
from web2gpt.config.flags import with_settings
from web2gpt.config.outputs import Evaluate


@with_settings(Evaluate)
def evaluate(
    *,
    model: ModelFolder,
    tokenizer: CheckpointTokenizer = None,
    index: Annotated[
        Path | None, typer.Option(help="index/manifest.json of a run, to evaluate on its parts")
    ] = None,
    output: Annotated[Path, typer.Option(help="evaluation.json to write")],
    work: Annotated[Path, typer.Option(help="work folder")],
    settings: Evaluate,
) -> None:
    """Measure loss, perplexity and bits per byte on held-out text, and accuracy on cloze.

    Example: web2gpt evaluate --model model --index index/manifest.json
    --output evaluation.json --work work/evaluate
    """
    from web2gpt.checkpoint.open import ModelFiles
    from web2gpt.evaluate.stage import EvaluateFiles, evaluate_model

    files = EvaluateFiles(ModelFiles(model, tokenizer), index, output, work)
    evaluate_model(files, settings)
