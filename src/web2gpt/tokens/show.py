"""Print what an indexed dataset holds."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from web2gpt.errors import InputError
from web2gpt.tokens.documents import DocumentNames
from web2gpt.tokens.indexed import IndexedDataset
from web2gpt.tokens.verify import verify_dataset
from web2gpt.tokens.vocabulary import Vocabulary, parse_tokenizer


def show_verified(prefixes: Sequence[Path], tokenizer: Path | None) -> None:
    """Verify datasets, a line each. Raises ``InputError`` at the first fault."""
    vocabulary = Vocabulary.load(tokenizer) if tokenizer else None
    for prefix in prefixes:
        data = verify_dataset(prefix, vocabulary)
        print(f"{data.prefix}: sound; {_sizes(data)}")


def show_dataset(
    prefix: Path,
    *,
    tokenizer: Path | None,
    documents: Path | None,
    chosen: Sequence[int],
    offset: int,
    length: int,
) -> None:
    """Print sizes, and ``length`` tokens from ``offset`` on of each chosen document.

    Raises ``InputError`` for a damaged pair, whose offsets may lead anywhere.
    """
    data = verify_dataset(prefix)
    print(f"{data.prefix}: {_sizes(data)}")
    print(f"lengths: {_lengths(data)}")
    decode = _decoder(tokenizer) if tokenizer else None
    names = DocumentNames(documents) if documents else None
    for number in chosen:
        if number >= len(data):
            raise InputError(f"{data.idx}: no document {number:,}; there are {len(data):,}.")
        ids = data.get(number, offset, length).tolist()
        print(f"\ndocument {number:,}, {data.lengths[number]:,} tokens", end="")
        print(f", {names.describe(number)}" if names else "")
        print(decode(ids) if decode else " ".join(map(str, ids)))


def _decoder(path: Path) -> Callable[[list[int]], str]:
    """From ids to text. Raises ``InputError`` for ids that no tokenizer has."""
    tokenizer = parse_tokenizer(path.read_bytes(), path)

    def decode(ids: list[int]) -> str:
        try:
            return str(tokenizer.decode(ids, skip_special_tokens=False))
        except OverflowError as error:
            raise InputError(
                f"{path}: cannot decode {min(ids)} to {max(ids)}; name the tokenizer that the "
                "ids were made with."
            ) from error

    return decode


def _sizes(data: IndexedDataset) -> str:
    documents = max(0, len(data.document_index) - 1)
    sequences = "" if documents == len(data) else f" of {len(data):,} sequences"
    return f"{documents:,} documents{sequences}, {len(data.tokens):,} tokens as {data.dtype.name}"


def _lengths(data: IndexedDataset) -> str:
    if not len(data):
        return "none"
    points: Any = np.quantile(data.lengths, [0, 0.05, 0.5, 0.95, 1], method="nearest")
    names = ("shortest", "5%", "median", "95%", "longest")
    return ", ".join(f"{name} {value:,}" for name, value in zip(names, points, strict=True))
