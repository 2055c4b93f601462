"""Text to ids: by fastokens, held to what ``tokenizers`` says, or by ``tokenizers`` alone.

Invariant: the ids are those of ``tokenizers`` for the same file, and special tokens written in a
text are text: the end-of-document id is never among a text's ids. Both libraries work on threads
of their own and release the interpreter's lock; nothing here forks.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from web2gpt.errors import InputError
from web2gpt.tokens.vocabulary import Vocabulary, parse_tokenizer

CHECKED = 2048  # characters of a text that are encoded by both libraries

Ids = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]
BatchEncoder = Callable[[Sequence[str]], tuple[Ids, Offsets]]


class Encoder:
    """Encodes batches of texts; safe to share between threads."""

    def __init__(self, path: Path, vocabulary: Vocabulary):
        content = path.read_bytes()
        self._vocabulary = vocabulary
        self._reference = reference_encoder(content, path)
        fast = fast_encoder(content)
        self.name = "fastokens" if fast else "tokenizers"
        self._encode = fast or self._reference

    def encode(self, texts: Sequence[str]) -> tuple[Ids, Offsets]:
        """All ids of the texts back to back [tokens], and where each text's begin [texts + 1].

        Raises ``InputError`` if a text yields the end-of-document id.
        """
        ids, offsets = self._encode(texts)
        inside = np.flatnonzero(ids == self._vocabulary.eod_id)
        if inside.size:
            text = texts[int(np.searchsorted(offsets, inside[0], side="right")) - 1]
            raise InputError(
                f"the tokenizer gives the end-of-document id {self._vocabulary.eod_id} for plain "
                f"text: {excerpt(text)}; documents could not be told apart. Name another token "
                "with tokenizer.eod, or train a tokenizer."
            )
        return ids, offsets

    def check(self, texts: Sequence[str]) -> None:
        """Encode the beginnings of these texts with both libraries.

        Raises ``InputError`` with the first text on which they differ.
        """
        beginnings = [text[:CHECKED] for text in texts]
        ids, offsets = self._encode(beginnings)
        expected_ids, expected_offsets = self._reference(beginnings)
        if np.array_equal(ids, expected_ids) and np.array_equal(offsets, expected_offsets):
            return
        for number, text in enumerate(beginnings):
            ours = ids[offsets[number] : offsets[number + 1]]
            theirs = expected_ids[expected_offsets[number] : expected_offsets[number + 1]]
            if not np.array_equal(ours, theirs):
                raise InputError(
                    f"{self.name} and tokenizers differ on {excerpt(text)}: {ours[:20].tolist()} "
                    f"and {theirs[:20].tolist()}. Uninstall fastokens (tokenizers then does the "
                    "work, slower) and report the text to its authors."
                )


def reference_encoder(content: bytes, path: Path) -> BatchEncoder:
    """The encoder that defines the ids."""
    tokenizer = parse_tokenizer(content, path)

    def encode(texts: Sequence[str]) -> tuple[Ids, Offsets]:
        try:
            encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        except Exception as error:  # the library raises no narrower one
            raise InputError(
                f"{path}: cannot encode every text ({error}); name a byte-level tokenizer, or "
                "train one."
            ) from error
        ids = [np.array(encoding.ids, np.uint32) for encoding in encodings]
        offsets = np.zeros(len(ids) + 1, np.int64)
        np.cumsum([len(part) for part in ids], out=offsets[1:])
        return np.concatenate([np.empty(0, np.uint32), *ids]), offsets

    return encode


def fast_encoder(content: bytes) -> BatchEncoder | None:
    """The same ids, several times faster; None if fastokens is missing or cannot do this file."""
    try:
        import fastokens
    except ImportError:
        return None
    added = orjson.loads(content).get("added_tokens", ())
    if not all(token.get("special") for token in added):
        print("tokenize: without fastokens (added tokens that are plain text)", file=sys.stderr)
        return None
    try:
        tokenizer = fastokens.Tokenizer.from_json_str(content.decode())
        tokenizer.no_truncation()
        tokenizer.no_padding()
    except Exception as error:  # noqa: BLE001 - the library raises plain exceptions
        print(f"tokenize: without fastokens ({error})", file=sys.stderr, flush=True)
        return None

    def encode(texts: Sequence[str]) -> tuple[Ids, Offsets]:
        ids, offsets = tokenizer.encode_batch_flat(
            list(texts), add_special_tokens=False, split_special_tokens=True
        )
        return np.frombuffer(ids, "<u4"), np.frombuffer(offsets, "<u8").astype(np.int64)

    return encode


def excerpt(text: str, length: int = 200) -> str:
    """A text as an error message shows it."""
    return repr(text if len(text) <= length else text[:length] + "…")


def with_eod(ids: Ids, offsets: Offsets, eod: int | None, dtype: Any) -> tuple[Any, Any]:
    """The texts' ids [tokens + texts] in ``dtype``, each followed by ``eod``, and their lengths.

    With ``eod`` None nothing is added.
    """
    lengths = np.diff(offsets)
    if eod is None:
        return ids.astype(dtype), lengths.astype("<i4")
    together = np.empty(ids.size + lengths.size, dtype)
    ends = offsets[1:] + np.arange(lengths.size)  # where each document's last token comes to lie
    is_text = np.ones(together.size, bool)
    is_text[ends] = False
    together[ends] = eod
    together[is_text] = ids
    return together, (lengths + 1).astype("<i4")
