"""The language of a text by langdetect, seeded, so that a text always gets the same answer.

langdetect 1.0.9 (n-grams of characters, naive Bayes) defines the result; langdetect-rs, where it is
installed, computes the same one in compiled code. A text without letters has no language.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SEED = 0
DIGITS = 6  # of the probability, as stored


@dataclass(frozen=True)
class Language:
    """An ISO 639-1 code (Chinese: zh-cn, zh-tw) and its probability."""

    code: str
    probability: float


Detect = Callable[[str], Language | None]


def language_detector(*, fast: bool = True) -> Detect:
    """Detects a text's likeliest language; ``fast``: by langdetect-rs where it is installed."""
    library = _load("langdetect_rs") if fast else None
    library = library or importlib.import_module("langdetect")
    library.DetectorFactory.seed = SEED
    failure = library.LangDetectException

    def detect(text: str) -> Language | None:
        try:
            best = library.detect_langs(text)[0]
        except failure:  # no features in the text
            return None
        return Language(best.lang, round(best.prob, DIGITS))

    return detect


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
