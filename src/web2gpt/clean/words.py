"""Words and sentences for the rules of Gopher, C4 and FineWeb.

``simple`` is one regular expression: numbers, words, English contractions, each other character.
``spacy`` is spaCy's blank English pipeline, which datatrove uses; it is 15 times slower.
Sentences are counted by the rule of spaCy's sentencizer: one ends at a mark such as . ! ? and the
next begins with the first word after it that is no punctuation.
"""

import importlib
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

import regex  # type: ignore[import-untyped]  # has no types

from web2gpt.errors import ConfigError

APOSTROPHE = r"['\u2019]"
SIMPLE = re.compile(
    rf"\w+?(?=n{APOSTROPHE}t\b)|n{APOSTROPHE}t\b|{APOSTROPHE}(?:s|re|ve|ll|d|m|S)\b"
    r"|\d+(?:[.,]\d+)+|(?:[A-Za-z]\.){2,}|\w+(?:[.(@]+(?![A-Z])\w+)*|\.{2,}|-{2,}|[^\w\s]"
)
SENTENCE_END = regex.compile(r"\p{Sentence_Terminal}")

WordSplitter = Callable[[str], list[str]]


def word_splitter(kind: Literal["simple", "spacy"]) -> WordSplitter:
    """The words of a text, punctuation marks among them. Remembers the last text."""
    return lru_cache(1)(SIMPLE.findall if kind == "simple" else _spacy_splitter())


def ends_sentence(mark: str) -> bool:
    return SENTENCE_END.fullmatch(mark) is not None


def count_sentences(words: list[str]) -> int:
    """Sentences in a text of these words; 0 if there are none."""
    count, has_ended = min(1, len(words)), False
    for word in words:
        if ends_sentence(word):
            has_ended = True
        elif has_ended and not is_punctuation(word):
            count += 1
            has_ended = False
    return count


@lru_cache(1 << 16)
def is_punctuation(word: str) -> bool:
    return all(unicodedata.category(character)[0] == "P" for character in word)


@lru_cache(1 << 16)
def is_symbol(word: str) -> bool:
    """Whether a word is of punctuation, symbols and controls only."""
    return all(unicodedata.category(character)[0] in "PSC" for character in word)


def _spacy_splitter() -> WordSplitter:
    try:
        spacy: Any = importlib.import_module("spacy")
    except ImportError as error:
        raise ConfigError(
            "clean.words = spacy: spaCy is not installed; pip install spacy."
        ) from error
    pipeline = spacy.blank("en")

    def split(text: str) -> list[str]:
        with pipeline.memory_zone():
            pipeline.max_length = len(text) + 1
            return [stripped for token in pipeline(text) if (stripped := token.text.strip())]

    return split
