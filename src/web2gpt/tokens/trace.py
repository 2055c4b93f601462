"""Which documents a training step saw."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from web2gpt.config.length import Length
from web2gpt.config.load import read_config
from web2gpt.errors import ConfigError
from web2gpt.tokens.documents import DocumentNames
from web2gpt.tokens.samples import Samples


def samples_of_step(step: int, global_batch_size: int | None, config: Path | None) -> range:
    """The samples of optimizer step ``step`` (from 1) of a run whose batches have one size, or of
    the run that ``config`` describes, whose batches may ramp up."""
    if (global_batch_size is None) == (config is None):
        raise ConfigError("give either --global-batch-size or --config.")
    if config is None:
        size = global_batch_size or 0
        return range((step - 1) * size, step * size)
    run = read_config(config)
    length = Length.of(run.train, run.model.n_positions)
    if length.is_skipped(step):
        raise ConfigError(f"--step {step}: train.skip_steps passes over it; it saw nothing.")
    return range(length.first_sample(step), length.first_sample(step + 1))


def trace_samples(
    manifest: Path, split: str, numbers: Sequence[int], documents: Mapping[str, Path]
) -> None:
    """Print samples and the documents that they are made of.

    ``documents``: documents.parquet by dataset; the name "" is the first dataset.
    """
    samples = Samples(manifest, split)
    names = {name: DocumentNames(path) for name, path in documents.items()}
    for number in numbers:
        print(f"sample {number:,}")
        for piece in samples.pieces(number):
            place, row = samples.locate(piece.document)
            dataset = samples.manifest["datasets"][place]["name"]
            known = names.get(dataset) or (names.get("") if place == 0 else None)
            print(
                f"  {dataset} {row:,}, tokens {piece.offset:,} to "
                f"{piece.offset + piece.length - 1:,}"
                + (f", {known.describe(row)}" if known else "")
            )
