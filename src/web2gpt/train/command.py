"""The command train."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.config.flags import with_settings
from web2gpt.config.train_stage import TrainStage


@with_settings(TrainStage)
def train(
    *,
    index: Annotated[Path, typer.Option(help="manifest.json of the sample index")],
    tokenizer: Annotated[Path, typer.Option(help="tokenizer.json of the run's tokens")],
    output: Annotated[Path, typer.Option(help="folder for done.json, metrics and TensorBoard")],
    checkpoints: Annotated[Path, typer.Option(help="folder of checkpoints, by identity")],
    work: Annotated[Path, typer.Option(help="work folder")],
    documents: Annotated[
        list[str] | None,
        typer.Option(
            help="documents.parquet of the first dataset, or NAME=FILE, to name the documents of a "
            "loss spike; repeatable"
        ),
    ] = None,
    attempt: Annotated[
        int,
        typer.Option(min=1, help="tries in a row; one after an error that stays ends with it"),
    ] = 1,
    settings: TrainStage,
) -> None:
    """Train GPT-2 under the configured layout; carries on from its last checkpoint.

    SIGTERM and SIGUSR1 save and leave with exit code 75, as train.exit_after does: run it again.

    One process a rank is started on this node: the same command for one CPU process, several GPUs,
    or several nodes (NNODES, NODE_RANK, MASTER_ADDR and MASTER_PORT set, or srun).

    Example: web2gpt train --index index/manifest.json --tokenizer tokenizer.json --output train
    --checkpoints checkpoints --work work/train --parallel.tensor 2 --train.steps 1000
    """
    from web2gpt.train.launcher import STOPPED
    from web2gpt.train.stage import TrainFiles, train_run

    pairs = (text.rpartition("=") for text in documents or ())
    named = {name: path for name, _, path in pairs}
    files = TrainFiles(index, tokenizer, output, checkpoints, work, named)
    if not train_run(files, settings, attempt):
        raise typer.Exit(STOPPED)
