"""A tokenizer file and what the other stages need to know of it.

``tokenizer.json`` (Hugging Face's format) is the one truth; its manifest says the same in a form
that needs no tokenizer library: sizes, the end-of-document token, a hash of the file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson
import tokenizers

from web2gpt.errors import InputError
from web2gpt.io.checksums import checksum_of

END_OF_TEXT = "<|endoftext|>"
LARGEST_ID = np.iinfo(np.int32).max - 1  # the vocabulary's size is an int32 too


@dataclass(frozen=True)
class Vocabulary:
    """Sizes and special tokens of a tokenizer. ``size`` is the highest id plus one."""

    size: int
    eod: str
    eod_id: int
    special: dict[str, int]
    digest: str  # blake2b-256 of tokenizer.json

    @classmethod
    def of(
        cls, content: bytes, eod: str | None = None, *, fallback: str | None = None, path: Path
    ) -> Self:
        """Read ``tokenizer.json``'s bytes.

        The end-of-document token is ``eod``; if none, <|endoftext|>; if the file has no such
        token, ``fallback``. Raises ``InputError`` if the bytes are no tokenizer, or one without
        that token; ``path`` is for messages.
        """
        tokenizer = parse_tokenizer(content, path)
        ids = tokenizer.get_vocab(with_added_tokens=True)
        name = eod or (END_OF_TEXT if END_OF_TEXT in ids else fallback or END_OF_TEXT)
        if name not in ids:
            raise InputError(
                f"{path}: has no token {name!r} to end a document with; name the one it has "
                "for this with tokenizer.eod, such as tokenizer.eod: '</s>'."
            )
        largest = max(ids.values())
        if largest > LARGEST_ID:
            raise InputError(
                f"{path}: has the id {largest:,}; .bin holds ids up to {LARGEST_ID:,}. The file is "
                "damaged: get it again."
            )
        added = sorted(tokenizer.get_added_tokens_decoder().items())
        special = {token.content: number for number, token in added if token.special}
        return cls(largest + 1, name, ids[name], special, checksum_of(content))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Of a tokenizer file of a run; its manifest, where one lies beside it, names the token.

        Raises ``InputError`` also when file and manifest do not belong together.
        """
        if not path.is_file():
            raise InputError(f"{path}: no such file; run the stage tokenizer first.")
        content = path.read_bytes()
        manifest = path.with_name("manifest.json")
        said = _manifest(manifest)
        if "end_of_document" not in said:
            return cls.of(content, path=path)
        digest = checksum_of(content)
        if said.get("blake2b") != digest:
            raise InputError(
                f"{path}: not the file that {manifest} describes; run tokenizer again."
            )
        end = said["end_of_document"]
        return cls(said["vocab_size"], end["token"], end["id"], said["special_tokens"], digest)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the ids in .bin, by Megatron's rule."""
        return np.dtype("<u2") if self.size < 65500 else np.dtype("<i4")

    def as_json(self) -> dict[str, Any]:
        return {
            "vocab_size": self.size,
            "end_of_document": {"token": self.eod, "id": self.eod_id},
            "special_tokens": self.special,
            "dtype": self.dtype.name,
            "blake2b": self.digest,
        }


def _manifest(path: Path) -> dict[str, Any]:
    """What lies beside a tokenizer under the manifest's name; empty if it is something else."""
    try:
        said = orjson.loads(path.read_bytes()) if path.is_file() else {}
    except orjson.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) else {}


def parse_tokenizer(content: bytes, path: Path) -> Any:
    """A ``tokenizers.Tokenizer`` that neither cuts nor pads and takes special tokens in a text for
    the plain text they are.

    Raises ``InputError`` for bytes that are no tokenizer.
    """
    try:
        tokenizer = tokenizers.Tokenizer.from_str(content.decode())
    except Exception as error:  # the library raises no narrower one
        raise InputError(
            f"{path}: not a tokenizer.json; name one, or run the stage tokenizer."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer
