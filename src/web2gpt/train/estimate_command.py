"""The command estimate."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.config.flags import with_settings
from web2gpt.config.train_stage import TrainStage


@with_settings(TrainStage)
def estimate(
    *,
    config: Annotated[
        Path | None, typer.Option(help="configuration to take the settings from")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="manifest.json of an index: vocabulary, corpus size")
    ] = None,
    vocab_size: Annotated[int | None, typer.Option(min=1, help="size of the vocabulary")] = None,
    corpus_tokens: Annotated[
        int | None, typer.Option(min=1, help="training tokens of the corpus, for the epochs")
    ] = None,
    gpu_memory: Annotated[
        float | None, typer.Option(min=0.001, help="GB (10^9 bytes) of a GPU; none: by nvidia-smi")
    ] = None,
    tflops: Annotated[
        float | None, typer.Option(min=0.001, help="TFLOP/s that a process really reaches")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="the figures as JSON")] = False,
    settings: TrainStage,
) -> None:
    """Print what a run will take: parameters, tokens, operations, memory, disk and time.

    A layout that does not fit the GPU ends it with exit code 1 and layouts that do.

    Example: web2gpt estimate --config config.yaml --gpu-memory 24 --tflops 60
    """
    from web2gpt.train.estimate_options import Given, show_estimate

    given = Given(config, index, vocab_size, corpus_tokens, gpu_memory, tflops)
    show_estimate(given, settings, as_json=json)
