"""The command sample."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.config.flags import with_settings
from web2gpt.config.outputs import SampleRun


@with_settings(SampleRun)
def sample(
    *,
    model: Annotated[Path, typer.Option(help="folder of a Hugging Face GPT-2 model")],
    output: Annotated[Path, typer.Option(help="samples.jsonl to write")],
    work: Annotated[Path, typer.Option(help="work folder")],
    settings: SampleRun,
) -> None:
    """Draw text from a model: greedy or by temperature, top-k and top-p, in this order."""
    from web2gpt.sample.stage import SampleFiles, sample_model

    sample_model(SampleFiles(model, output, work), settings)
