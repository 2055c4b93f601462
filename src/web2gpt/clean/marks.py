"""Runs of combining marks so long that putting them in order would take quadratic time.

Normalization sorts the marks behind a letter by insertion: a hundred thousand of them keep it busy
for minutes. The longest runs of real writing have some tens; Unicode's stream-safe form (UAX #15,
section 13) allows 30.
"""

import re
import unicodedata
from functools import cache

MOST = 256  # marks in a row that a text may have
FIRST, LAST = 0x300, 0x1F000  # all marks stand between these


def longest_run(text: str) -> int:
    """The length of the longest run of more than ``MOST`` marks; 0 if there is none."""
    if text.isascii() or len(text) <= MOST:
        return 0
    return max((len(run[0]) for run in _runs().finditer(text)), default=0)


def is_mark(character: str) -> bool:
    """Whether the character, or the first of those that it is made of, is sorted among marks."""
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) > 0


@cache
def _runs() -> re.Pattern[str]:
    marks = "".join(filter(is_mark, map(chr, range(FIRST, LAST))))
    return re.compile(f"[{marks}]{{{MOST + 1},}}")
