"""Quality and repetition by the rules of Rae et al. 2021 (Gopher), appendix A.1.

Where the paper leaves a choice, it is datatrove's: shares of characters are of the whole text's,
repeated lines are told apart from repeated paragraphs by the number of line feeds, and overlapping
repeated n-grams count once.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from web2gpt.clean.words import WordSplitter, is_symbol
from web2gpt.config.clean import GopherQuality, GopherRepetition

STOP_WORDS = frozenset("the be to of and that have with".split())
BULLETS = ("•", "-")
ELLIPSES = ("...", "…")
PARAGRAPH_ENDS, LINE_ENDS = re.compile(r"\n{2,}"), re.compile(r"\n+")

Finding = tuple[str, float]
"""The rule that a document breaks, and the figure that broke it."""


def judge_quality(text: str, split: WordSplitter, rules: GopherQuality) -> Finding | None:
    """The first rule that the text breaks, if it breaks one."""
    return next(_quality_findings(text, split(text), rules), None)


def _quality_findings(text: str, words: list[str], rules: GopherQuality) -> Iterator[Finding]:
    proper = [word for word in words if not is_symbol(word)]
    if len(proper) < max(1, rules.min_words):
        yield "few_words", len(proper)
        return
    if len(proper) > rules.max_words:
        yield "many_words", len(proper)
    length = sum(map(len, proper)) / len(proper)
    if not rules.min_word_length <= length <= rules.max_word_length:
        yield "word_length", length
    for marks in (("#",), ELLIPSES):
        share = sum(map(text.count, marks)) / len(words)
        if share > rules.max_symbols:
            yield "symbols", share
    lines = text.splitlines()
    bullets = sum(line.lstrip().startswith(BULLETS) for line in lines) / len(lines)
    if bullets > rules.max_bullets:
        yield "bullets", bullets
    ellipses = sum(line.rstrip().endswith(ELLIPSES) for line in lines) / len(lines)
    if ellipses > rules.max_ellipses:
        yield "ellipses", ellipses
    alphabetic = sum(word.isalpha() or any(map(str.isalpha, word)) for word in words) / len(words)
    if alphabetic < rules.min_alphabetic:
        yield "alphabetic", alphabetic
    if (stops := len(STOP_WORDS.intersection(words))) < rules.min_stop_words:
        yield "stop_words", stops


def judge_repetition(text: str, split: WordSplitter, rules: GopherRepetition) -> Finding | None:
    """The first rule that the text breaks, if it breaks one."""
    return next(_repetition_findings(text, split, rules), None) if text else None


def _repetition_findings(
    text: str, split: WordSplitter, rules: GopherRepetition
) -> Iterator[Finding]:
    parts = (
        (PARAGRAPH_ENDS.split(text.strip()), "paragraph"),
        (LINE_ENDS.split(text), "line"),
    )
    for pieces, kind in parts:
        count, characters = repeated(pieces)
        yield from _above(f"duplicate_{kind}s", count / len(pieces), rules)
        yield from _above(f"duplicate_{kind}_characters", characters / len(text), rules)
    words = split(text)
    for n in (2, 3, 4):
        yield from _above(f"top_{n}_gram", _commonest(words, n) / len(text), rules)
    for n in range(5, 11):
        yield from _above(f"duplicate_{n}_grams", _repeated_ngrams(words, n) / len(text), rules)


def _above(name: str, share: float, rules: GopherRepetition) -> Iterator[Finding]:
    if share > getattr(rules, name):
        yield name, share


def repeated(pieces: Sequence[str]) -> tuple[int, int]:
    """How many pieces have stood before, and their characters."""
    counts = Counter(pieces)
    again = [(count - 1, len(piece)) for piece, count in counts.items() if count > 1]
    return sum(count for count, _ in again), sum(count * length for count, length in again)


def _commonest(words: list[str], n: int) -> int:
    """Characters in all copies of the commonest n-gram, spaces inside it included; of several that
    are equally common, the one that stands first counts."""
    counts = Counter(zip(*(words[start:] for start in range(n)), strict=False))
    if not counts:
        return 0
    ngram, count = max(counts.items(), key=lambda item: item[1])
    return count * (sum(map(len, ngram)) + n - 1)


def _repeated_ngrams(words: list[str], n: int) -> int:
    """Characters in n-grams seen before; after one, the search goes on behind it."""
    seen: set[str] = set()
    characters = place = 0
    while place <= len(words) - n:
        ngram = "".join(words[place : place + n])
        if ngram in seen:
            characters += len(ngram)
            place += n
        else:
            seen.add(ngram)
            place += 1
    return characters
