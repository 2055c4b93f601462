"""What an indexed dataset holds: its sizes, and some of its documents."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from web2gpt.errors import InputError
from web2gpt.tokens.documents import FIELDS, DocumentNames
from web2gpt.tokens.indexed import IndexedDataset
from web2gpt.tokens.verify import verify_dataset
from web2gpt.tokens.vocabulary import Vocabulary, parse_tokenizer

QUANTILES = {"shortest": 0, "5%": 0.05, "median": 0.5, "95%": 0.95, "longest": 1}


def verified_sizes(prefixes: Sequence[Path], tokenizer: Path | None) -> list[dict[str, Any]]:
    """Verify datasets; the sizes of each. Raises ``InputError`` at the first fault."""
    vocabulary = Vocabulary.load(tokenizer) if tokenizer else None
    return [_sizes(verify_dataset(prefix, vocabulary)) for prefix in prefixes]


def contents(
    prefix: Path,
    *,
    tokenizer: Path | None,
    documents: Path | None,
    chosen: Sequence[int],
    offset: int,
    length: int,
) -> dict[str, Any]:
    """Sizes, lengths, and ``length`` ids from ``offset`` on of each chosen document, with their
    text if a tokenizer is given.

    Raises ``InputError`` for a damaged pair, whose offsets may lead anywhere.
    """
    data = verify_dataset(prefix)
    decode = _decoder(tokenizer) if tokenizer else None
    names = DocumentNames(documents) if documents else None
    shown = []
    for number in chosen:
        if number >= len(data):
            raise InputError(f"{data.idx}: no document {number:,}; take one below {len(data):,}.")
        ids = data.get(number, offset, length).tolist()
        one: dict[str, Any] = {"document": number, "length": int(data.lengths[number])}
        one |= names.row(number) if names else {}
        shown.append(one | {"ids": ids} | ({"text": decode(ids)} if decode else {}))
    return _sizes(data) | {"lengths": _lengths(data), "shown": shown}


def sizes_line(sizes: dict[str, Any]) -> str:
    """The sizes of a dataset for the eye."""
    documents, sequences = sizes["documents"], sizes["sequences"]
    of = "" if documents == sequences else f" of {sequences:,} sequences"
    return f"{documents:,} documents{of}, {sizes['tokens']:,} tokens as {sizes['dtype']}"


def contents_lines(found: dict[str, Any]) -> list[str]:
    """``contents`` for the eye."""
    lengths = ", ".join(f"{name} {value:,}" for name, value in found["lengths"].items())
    lines = [f"{found['prefix']}: {sizes_line(found)}", f"lengths: {lengths or 'none'}"]
    for one in found["shown"]:
        names = " ".join(one[name] for name in FIELDS if one.get(name))
        head = f"\ndocument {one['document']:,}, {one['length']:,} tokens"
        lines.append(f"{head}, {names}" if names else head)
        lines.append(one["text"] if "text" in one else " ".join(map(str, one["ids"])))
    return lines


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


def _sizes(data: IndexedDataset) -> dict[str, Any]:
    return {
        "prefix": str(data.prefix),
        "documents": max(0, len(data.document_index) - 1),
        "sequences": len(data),
        "tokens": len(data.tokens),
        "dtype": data.dtype.name,
    }


def _lengths(data: IndexedDataset) -> dict[str, int]:
    """Quantiles of the lengths of sequences, in tokens."""
    if not len(data):
        return {}
    points: Any = np.quantile(data.lengths, list(QUANTILES.values()), method="nearest")
    return dict(zip(QUANTILES, points.tolist(), strict=True))
