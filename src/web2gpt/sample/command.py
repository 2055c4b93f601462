"""The command sample."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.checkpoint.model_options import CheckpointTokenizer, ModelFolder
from web2gpt.config.flags import with_settings
from web2gpt.config.outputs import SampleRun
from web2gpt.errors import ConfigError


@with_settings(SampleRun)
def sample(
    *,
    model: ModelFolder,
    tokenizer: CheckpointTokenizer = None,
    output: Annotated[
        Path | None, typer.Option(help="samples.jsonl to write; a .txt appears beside it")
    ] = None,
    work: Annotated[Path | None, typer.Option(help="work folder")] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="show each text as it is drawn, one at a time")
    ] = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="take prompts from the terminal; write nothing")
    ] = False,
    settings: SampleRun,
) -> None:
    """Draw text from a model: greedy or by temperature, top-k and top-p, in this order.

    Example: web2gpt sample --model model --output samples.jsonl --work work/sample
    --prompts 'Once upon a time' --temperature 0.9
    """
    from web2gpt.checkpoint.open import ModelFiles
    from web2gpt.sample import stage

    files = ModelFiles(model, tokenizer)
    if interactive:
        stage.interactive(files, settings)
    elif output is None or work is None:
        raise ConfigError("sample: give --output and --work, or --interactive.")
    else:
        stage.sample_model(stage.SampleFiles(files, output, work), settings, live=stream)
