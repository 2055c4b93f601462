"""Which documents a training step saw."""

from collections.abc import Mapping
from pathlib import Path

from web2gpt.tokens.documents import DocumentNames
from web2gpt.tokens.samples import Samples


def trace_step(
    manifest: Path, split: str, step: int, global_batch_size: int, documents: Mapping[str, Path]
) -> None:
    """Print each sample of optimizer step ``step`` (from 1) and the documents it is made of.

    ``documents``: documents.parquet by dataset; the name "" is the first dataset.
    """
    samples = Samples(manifest, split)
    names = {name: DocumentNames(path) for name, path in documents.items()}
    first = (step - 1) * global_batch_size
    print(f"step {step:,}: samples {first:,} to {first + global_batch_size - 1:,}")
    for number in range(first, first + global_batch_size):
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
