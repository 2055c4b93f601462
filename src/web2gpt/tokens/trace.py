"""Which documents a training step saw."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from web2gpt.config.length import Length
from web2gpt.config.load import read_config
from web2gpt.errors import ConfigError
from web2gpt.tokens.documents import FIELDS, NamesByDataset
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
        raise ConfigError(f"--step {step}: train.skip_steps passes over it; take another.")
    return range(length.first_sample(step), length.first_sample(step + 1))


def traced_samples(
    manifest: Path, split: str, numbers: Sequence[int], documents: Mapping[str, Path]
) -> Iterator[dict[str, Any]]:
    """Samples and the documents that they are made of: dataset, number in it, first and last token,
    and what the document is, if that is known.

    ``documents``: documents.parquet by dataset; the name "" is the first dataset.
    """
    samples = Samples(manifest, split)
    names = NamesByDataset(documents)
    for number in numbers:
        pieces = []
        for piece in samples.pieces(number):
            place, row = samples.locate(piece.document)
            dataset = samples.manifest["datasets"][place]["name"]
            known = names.of(dataset, place)
            pieces.append({
                "dataset": dataset,
                "document": row,
                "first_token": piece.offset,
                "last_token": piece.offset + piece.length - 1,
                **(known.row(row) if known else {}),
            })  # fmt: skip
        yield {"sample": number, "pieces": pieces}


def sample_lines(sample: Mapping[str, Any]) -> Iterator[str]:
    """One of ``traced_samples`` for the eye."""
    yield f"sample {sample['sample']:,}"
    for piece in sample["pieces"]:
        names = " ".join(piece[name] for name in FIELDS if piece.get(name))
        yield (
            f"  {piece['dataset']} {piece['document']:,}, tokens {piece['first_token']:,} to "
            f"{piece['last_token']:,}" + (f", {names}" if names else "")
        )
