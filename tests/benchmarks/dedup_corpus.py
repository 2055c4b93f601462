"""A corpus for measurements: real text, resampled and edited, with near-copies that are known.

Originals are runs of words drawn from the text of a folder of HTML or text files (without one: the
documentation strings of the standard library), so that two of them share only chance shingles.
A quarter of the documents are copies of an original before them, no two of one: one in five exact,
the others with 1 to 14 words replaced by other words of the text, a Jaccard similarity of 0.98 down
to 0.73.
"""

import html
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.dedup.corpora import words as documentation

from web2gpt.io.shards import Document, JsonlWriter
from web2gpt.web.ids import document_id

MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
MOST_EDITS = 14
LONGEST_RUN = 40  # words of the text that stay together; the shortest are 10
DELAY = 50  # originals between one and its copy


@dataclass(frozen=True)
class Planted:
    """A copy: its number, its original's, and how many words were replaced."""

    copy: int
    original: int
    edits: int


def words_of(folder: Path | None) -> list[str]:
    """The words of all .html and .txt files below a folder, in the order of their names."""
    if folder is None:
        return list(documentation())
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".txt") and path.is_file():
            text = path.read_text(errors="replace")
            found += html.unescape(MARKUP.sub(" ", text)).split()
    return found


class Corpus:
    """``count`` documents of ``length`` words, the same for the same seed."""

    def __init__(self, words: list[str], count: int, length: int = 460, seed: int = 0):
        self.words, self.count, self.length = words, count, length
        self._draw = random.Random(seed)
        self.planted: list[Planted] = []

    def texts(self) -> Iterator[str]:
        """The texts in order; fills ``planted``."""
        draw, waiting = self._draw, list[tuple[int, list[str]]]()
        for number in range(self.count):
            if number % 4 == 3 and len(waiting) > DELAY:
                original, words = waiting.pop(0)
                edits = 0 if number % 20 == 3 else draw.randint(1, MOST_EDITS)
                for at in draw.sample(range(self.length), edits):
                    words[at] = draw.choice(self.words)
                self.planted.append(Planted(number, original, edits))
            else:
                words = self._original()
                if number % 4 == 0:
                    waiting.append((number, words))
            yield " ".join(words)

    def _original(self) -> list[str]:
        words, uniform = list[str](), self._draw.random
        last = len(self.words) - LONGEST_RUN
        while len(words) < self.length:
            start = int(uniform() * last)
            words += self.words[start : start + 10 + int(uniform() * (LONGEST_RUN - 9))]
        return words[: self.length]

    def write(self, folder: Path, shards: int) -> list[Path]:
        """Write the documents as shards of JSON lines, dealt out in turn."""
        paths = [folder / f"text-{number:04d}.jsonl.zst" for number in range(shards)]
        writers = [JsonlWriter(path) for path in paths]
        for number, text in enumerate(self.texts()):
            writers[number % shards].write(document(number, text))
        for writer in writers:
            writer.__exit__(None)
        return paths


def identifier(number: int) -> str:
    return document_id("benchmark", url(number))


def url(number: int) -> str:
    return f"http://example.org/{number:09d}"


def document(number: int, text: str) -> Document:
    return {"id": identifier(number), "url": url(number), "text": text, "source": "benchmark"}
