"""Two texts side by side, from shortly before they differ: which words are others."""

import re
from difflib import SequenceMatcher

COMPARED = 4000  # words of each text
SHOWN = 120  # words of each text, the first of them ``BEFORE`` words before a difference
BEFORE = 20

Parts = tuple[tuple[str, bool], ...]
"""A text in pieces, each with whether it is another one in the other text."""


def differences(one: str, other: str) -> tuple[Parts, Parts]:
    """Both texts, word by word, from shortly before their first difference."""
    words: list[list[str]] = [re.findall(r"\S+\s*", text)[:COMPARED] for text in (one, other)]
    blocks = SequenceMatcher(a=words[0], b=words[1], autojunk=False).get_opcodes()
    first = next((block for block in blocks if block[0] != "equal"), blocks[0] if blocks else None)
    start = max(0, first[1] - BEFORE) if first else 0
    return (
        _cut([(words[0][a:b], kind) for kind, a, b, _, _ in blocks], start),
        _cut([(words[1][c:d], kind) for kind, _, _, c, d in blocks], start),
    )


def _cut(blocks: list[tuple[list[str], str]], start: int) -> Parts:
    """``SHOWN`` words from ``start`` on."""
    parts: list[tuple[str, bool]] = [("… ", False)] if start else []
    position = 0
    for words, kind in blocks:
        shown = words[max(0, start - position) : max(0, start + SHOWN - position)]
        position += len(words)
        if shown:
            parts.append(("".join(shown), kind != "equal"))
    return (*parts, ("…", False)) if position > start + SHOWN else tuple(parts)
