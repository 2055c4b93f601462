"""Text as the search for duplicates sees it: normalised for hashing only, never written.

Compatibility form (NFKC), lower case, any white space one space. Two texts that differ in nothing
else are exact duplicates. Source of the form: Unicode Standard Annex 15.
"""

import unicodedata
from collections.abc import Iterator

import numpy as np

CHUNK = 1024  # characters normalised at a time: runs of combining marks cost their square
LONG = 1 << 18  # characters; in longer texts, words are cut so that pieces can be made
LONGEST_WORD = 1000  # characters, in long texts
SPACES = b"\t\n\v\f\r\x1c\x1d\x1e\x1f"  # what str.split takes for white space, in ASCII
FOLD = bytes(range(256)).lower().translate(bytes.maketrans(SPACES, b" " * len(SPACES)))
OTHER_SPACES = "\x85\u1680\u2028\u2029"  # beyond ASCII, in NFKC


def normalise(text: str) -> str:
    """The form that is hashed: words joined by single spaces."""
    if not text.isascii():
        text = "".join(_folded(text))
    data = text.encode(errors="surrogatepass").translate(FOLD)
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    normalised = data.strip(b" ").decode(errors="surrogatepass")
    return " ".join(_cut(normalised.split(" "))) if len(normalised) > LONG else normalised


def _folded(text: str) -> Iterator[str]:
    """The text in pieces; stretches beyond ASCII, with what they may combine with, in NFKC and
    lower case."""
    done = 0
    for start, end in beyond_ascii(text):
        begin = max(start - 1, done)
        yield text[done:begin]
        done = end
        for at in range(begin, end, CHUNK):
            piece = unicodedata.normalize("NFKC", text[at : min(at + CHUNK, end)]).lower()
            for space in OTHER_SPACES:
                piece = piece.replace(space, " ")
            yield piece
    yield text[done:]


def beyond_ascii(text: str, gap: int = 0) -> list[tuple[int, int]]:
    """Start and end of each stretch of characters beyond ASCII; stretches that are at most ``gap``
    characters apart are one."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    (places,) = (codes > 127).nonzero()
    if not len(places):
        return []
    (breaks,) = (places[1:] - places[:-1] > gap + 1).nonzero()
    starts = [places.item(0), *places[breaks + 1].tolist()]
    lasts = [*places[breaks].tolist(), places.item(-1)]
    return [(start, last + 1) for start, last in zip(starts, lasts, strict=True)]


def _cut(words: list[str]) -> Iterator[str]:
    for word in words:
        for at in range(0, len(word), LONGEST_WORD):
            yield word[at : at + LONGEST_WORD]
