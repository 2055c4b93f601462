"""The commands merge-checkpoint, and checkpoint inspect, verify, reshape and import."""

from pathlib import Path
from typing import Annotated

import typer

from web2gpt.config.flags import with_settings
from web2gpt.config.outputs import ImportCheckpoint, MergeCheckpoint

checkpoint = typer.Typer(no_args_is_help=True, help="Look into the trainer's checkpoints.")
Folder = Annotated[Path, typer.Argument(help="a checkpoint's folder: …/step_00001000")]


@with_settings(MergeCheckpoint)
def merge_checkpoint(
    *,
    done: Annotated[Path, typer.Option(help="train/done.json, which names the checkpoint")],
    tokenizer: Annotated[Path, typer.Option(help="tokenizer.json of the run's tokens")],
    output: Annotated[Path, typer.Option(help="folder to make: a Hugging Face GPT-2 model")],
    work: Annotated[Path, typer.Option(help="work folder")],
    settings: MergeCheckpoint,
) -> None:
    """Join a checkpoint's slices into a Hugging Face folder, and verify it.

    Example: web2gpt merge-checkpoint --done train/done.json --tokenizer tokenizer.json
    --output model --work work/merge_checkpoint --dtype bfloat16
    """
    from web2gpt.checkpoint.merge import MergeFiles
    from web2gpt.checkpoint.merge import merge_checkpoint as merge

    merge(MergeFiles(done, tokenizer, output, work), settings)


@checkpoint.command()
def inspect(
    folder: Folder,
    json: Annotated[bool, typer.Option("--json", help="the same as JSON")] = False,
) -> None:
    """Say what a checkpoint holds: run, step, tokens seen, layout, sizes.

    Example: web2gpt checkpoint inspect checkpoints/0123456789abcdef0123/step_00001000
    """
    from web2gpt.checkpoint.inspect import describe, facts_json

    print(facts_json(folder) if json else describe(folder))


@checkpoint.command()
def verify(folder: Folder) -> None:
    """Check a checkpoint: checksums, every key, replicas equal to the bit, no NaN.

    Example: web2gpt checkpoint verify checkpoints/0123456789abcdef0123/step_00001000
    """
    from web2gpt.checkpoint.inspect import verify as check

    print(check(folder))


@checkpoint.command()
def reshape(
    folder: Folder,
    output: Annotated[Path, typer.Option(help="folder to make: another …/step_00001000")],
    tensor: Annotated[int, typer.Option(min=1, help="tensor-parallel ranks")] = 1,
    pipeline: Annotated[int, typer.Option(min=1, help="pipeline stages")] = 1,
) -> None:
    """Write a checkpoint again under another layout, without training.

    Example: web2gpt checkpoint reshape run/step_00001000 --output wide/step_00001000 --tensor 4
    """
    from web2gpt.checkpoint.reshape import reshape as write
    from web2gpt.config.training import Parallel

    print(write(folder, output, Parallel(tensor=tensor, pipeline=pipeline)))


@checkpoint.command("import")
@with_settings(ImportCheckpoint)
def import_(
    *,
    source: Annotated[Path, typer.Argument(help="folder of the checkpoint")],
    output: Annotated[Path, typer.Option(help="folder to make: a Hugging Face GPT-2 model")],
    tokenizer: Annotated[Path, typer.Option(help="tokenizer.json that it was trained with")],
    settings: ImportCheckpoint,
) -> None:
    """Make a Hugging Face folder of a model from elsewhere: Megatron-LM, Megatron-DeepSpeed, or
    Hugging Face with pickled weights or a padded vocabulary.

    Example: web2gpt checkpoint import megatron/iter_0005000 --output model
    --tokenizer tokenizer.json --n-head 16
    """
    from web2gpt.checkpoint.importing import import_checkpoint

    print(import_checkpoint(source, output, tokenizer, settings))
