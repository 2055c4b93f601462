"""What an indexed dataset was made with: PREFIX.manifest.json beside the pair.

The format itself says nothing of the tokenizer, and ids of another one look like any ids. The
manifest holds the tokenizer's size, special tokens and hash, and what was encoded; pairs of other
tools have none, and are taken as they are.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from web2gpt.errors import InputError
from web2gpt.tokens.vocabulary import Vocabulary

FORMAT = 1


def manifest_path(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + ".manifest.json")


def describe(vocabulary: Vocabulary, **facts: Any) -> dict[str, Any]:
    """The manifest's content; ``facts`` follow the tokenizer's."""
    return {"format": FORMAT, "tokenizer": vocabulary.as_json()} | facts


def read_manifest(prefix: Path) -> dict[str, Any] | None:
    """The manifest of a pair, or None if it has none.

    Raises ``InputError`` for a file of that name that is something else.
    """
    path = manifest_path(prefix)
    if not path.is_file():
        return None
    try:
        content = orjson.loads(path.read_bytes())
        content["tokenizer"]["blake2b"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: not the manifest of an indexed dataset; remove it, or run tokenize again."
        ) from error
    return dict(content)


def check_tokenizer(prefix: Path, vocabulary: Vocabulary, tokenizer: Path) -> None:
    """Raise ``InputError`` if the pair says that it was made with another tokenizer."""
    content = read_manifest(prefix)
    if content and content["tokenizer"]["blake2b"] != vocabulary.digest:
        raise InputError(
            f"{manifest_path(prefix)}: the tokens were made with another tokenizer than "
            f"{tokenizer}; run tokenize again, or name that tokenizer with tokenizer.path."
        )


def merged_manifest(prefixes: Sequence[Path]) -> dict[str, Any] | None:
    """That of several pairs together; None unless all have one.

    Raises ``InputError`` if two were made with different tokenizers.
    """
    found = [(prefix, read_manifest(prefix)) for prefix in prefixes]
    known = [(prefix, content["tokenizer"]) for prefix, content in found if content]
    for prefix, tokenizer in known:
        if tokenizer["blake2b"] != known[0][1]["blake2b"]:
            raise InputError(
                f"{manifest_path(prefix)}: made with another tokenizer than {known[0][0]}; "
                "tokenize one of the two again."
            )
    if len(known) < len(found):
        return None
    return {"format": FORMAT, "tokenizer": known[0][1], "merged": len(found)}
