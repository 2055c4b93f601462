"""Text as the search for duplicates sees it: normalised for hashing only, never written.

Compatibility form (NFKC), lower case, any white space one space. Two texts that differ in nothing
else are exact duplicates. Source of the form: Unicode Standard Annex 15.
"""

import unicodedata
from collections.abc import Iterator

CHUNK = 1024  # characters normalised at a time: runs of combining marks cost their square
LONG = 1 << 18  # characters; in longer texts, words are cut so that pieces can be made
LONGEST_WORD = 1000  # characters, in long texts
ASCII_SPACE = b"\t\n\v\f\r\x1c\x1d\x1e\x1f"  # what str.split takes for white space
FOLD = bytes(range(128)).lower().translate(bytes.maketrans(ASCII_SPACE, b" " * 9)) + bytes(128)


def normalise(text: str) -> str:
    """The form that is hashed: words joined by single spaces."""
    normalised = _ascii_words(text) if text.isascii() else _words(text)
    return " ".join(_cut(normalised.split())) if len(normalised) > LONG else normalised


def _ascii_words(text: str) -> str:
    """As ``_words``, of a text that NFKC leaves alone; three times as fast."""
    data = text.encode().translate(FOLD)
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    return data.strip(b" ").decode()


def _words(text: str) -> str:
    starts = range(0, len(text), CHUNK)
    text = "".join(unicodedata.normalize("NFKC", text[at : at + CHUNK]) for at in starts)
    return " ".join(text.lower().split())


def _cut(words: list[str]) -> Iterator[str]:
    for word in words:
        for at in range(0, len(word), LONGEST_WORD):
            yield word[at : at + LONGEST_WORD]
