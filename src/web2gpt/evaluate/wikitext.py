"""Undo wikitext's own tokenization: what is left is text as people write it.

Wikitext writes joined hyphens, commas and points as ``@-@``, ``@,@``, ``@.@``, sets spaces around
punctuation and quotes, and marks headings with spaced equals signs. Models of plain text are to be
judged on plain text; the words are still counted on the original.
Source: Merity et al. 2016, "Pointer Sentinel Mixture Models", and the data itself.
"""

import re

_RULES = [
    (r" @([-,.])@ ", r"\1"),
    (r" ([:;.,!?])(?=\s|$)", r"\1"),
    (r"\( ([^)\n]*?) \)", r"(\1)"),
    (r"\[ ([^\]\n]*?) \]", r"[\1]"),
    (r"\{ ([^}\n]*?) \}", r"{\1}"),
    (r'" ([^"\n]*?) "', r'"\1"'),
    (r"(?<!\w)' ([^'\n]*?) '(?!\w)", r"'\1'"),
    (r" '(?=(?:s|t|m|d|re|ve|ll)\b)", r"'"),
    (r"s ' ", r"s' "),
    (r"= = = =", r"===="),
    (r"= = =", r"==="),
    (r"= =", r"=="),
    (r" \n", "\n"),
    (r"\n ", "\n"),
    (r" N ", " 1 "),
]
_COMPILED = [(re.compile(pattern), to) for pattern, to in _RULES]


def undone(text: str) -> str:
    """The text with wikitext's spaces and marks taken back."""
    for pattern, to in _COMPILED:
        text = pattern.sub(to, text)
    return text
