"""Text as the search for duplicates sees it: normalised for hashing only, never written.

Compatibility form (NFKC), lower case, any white space one space. Two texts that differ in nothing
else are exact duplicates. Source of the form: Unicode Standard Annex 15.
"""

import unicodedata
from collections.abc import Iterator

CHUNK = 1024  # characters normalised at a time: runs of combining marks cost their square
LONG = 1 << 18  # characters; in longer texts, words are cut so that pieces can be made
LONGEST_WORD = 1000  # characters, in long texts


def normalise(text: str) -> str:
    """The form that is hashed: words joined by single spaces."""
    if not text.isascii():
        starts = range(0, len(text), CHUNK)
        text = "".join(unicodedata.normalize("NFKC", text[at : at + CHUNK]) for at in starts)
    words = text.lower().split()
    normalised = " ".join(words)
    return " ".join(_cut(words)) if len(normalised) > LONG else normalised


def _cut(words: list[str]) -> Iterator[str]:
    for word in words:
        for at in range(0, len(word), LONGEST_WORD):
            yield word[at : at + LONGEST_WORD]
