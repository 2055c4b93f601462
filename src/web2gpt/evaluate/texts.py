"""The tokens and the sizes of a text or JSONL file, a piece at a time.

A text file is one document; of JSON lines, each is one, with end-of-text after it, as in training.
Words are counted as the old wikitext evaluation did: pieces between single spaces, of the text as
the file has it, before anything is undone to it.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from web2gpt.errors import InputError
from web2gpt.evaluate.wikitext import undone
from web2gpt.evaluate.windows import Array
from web2gpt.io.compression import BROKEN, is_json_lines, open_compressed
from web2gpt.io.shards import BadLine, read_jsonl

PIECE = 16 << 20  # characters tokenized at once
_SEAM = re.compile(r"(?<=\S\n)(?=\S)")  # where no token of any usual pre-tokenizer goes across
_WORD_SEAM = re.compile(r"(?<=\S)(?= \S)")  # where none of a byte-level one does


@dataclass
class TextFile:
    """``for ids in TextFile(...)``: token ids, a document or a piece of one at a time. The counts
    hold once it was read through."""

    path: Path
    tokenizer: Any
    end_of_text: int
    key: str = "text"
    wikitext: bool = False
    words: int = field(default=0, init=False)
    documents: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Array]:
        self.words = self.documents = 0
        if is_json_lines(self.path):
            for text in records(self.path, self.key):
                self.documents += 1
                self.words += text.strip().count(" ") + 1
                yield np.array([*self._ids(text), self.end_of_text], np.int64)
        else:
            self.documents, self.words = 1, 1
            for piece in self._pieces():
                self.words += piece.count(" ")
                yield np.array(self._ids(piece), np.int64)

    def _ids(self, text: str) -> list[int]:
        text = undone(text) if self.wikitext else text
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def _pieces(self) -> Iterator[str]:
        """The text without white space at its ends, cut where tokens are not."""
        held, first = "", True
        for read in _decoded(self.path):
            held = (held + read).lstrip() if first else held + read
            first = first and not held
            if len(held) >= PIECE and (end := _last_seam(held)):
                yield held[:end]
                held = held[end:]
        yield held.rstrip()


def _last_seam(text: str) -> int:
    """Where to cut a text that is long enough: behind its last line or, where a line is as long as
    a piece itself, before its last word; 0 if there is no such place."""
    for seam, reach in ((_SEAM, PIECE // 2), (_WORD_SEAM, PIECE + 2)):
        places = [found.start() for found in seam.finditer(text, max(0, len(text) - reach))]
        if places:
            return places[-1]
    return 0


def records(path: Path, key: str) -> Iterator[str]:
    """The texts of a JSONL file. Raises ``InputError``, with the line, for one that has none."""
    for number, record in enumerate(read_jsonl(path), start=1):
        if isinstance(record, BadLine):
            raise InputError(f"{path}, line {record.line}: {record.reason}; mend the file.")
        text = record.get(key)
        if not isinstance(text, str):
            raise InputError(
                f"{path}, record {number}: no text under {key!r}; mend it, or name the key."
            )
        yield text


def _decoded(path: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        with open_compressed(path) as file:
            while block := file.read(PIECE):
                yield decoder.decode(block)
            yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8; convert the file.") from error
    except BROKEN as error:
        raise InputError(f"{path}: breaks off or is damaged; get it again.") from error
    except OSError as error:
        raise InputError(
            f"{path}: cannot be opened ({error.strerror}); correct the path."
        ) from error
