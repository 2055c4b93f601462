r"""Words as decontamination compares them: ``\w+`` of the text as it is, each then case-folded.

Folding can change a text's length (the German sharp s becomes two letters), so words are found
first and folded after; their places are always places in the original text.
"""

import re

WORD = re.compile(r"\w+")


def folded_words(text: str) -> list[str]:
    """The words of a text, in order."""
    found = WORD.findall(text)
    # One call for all of them; no word holds a line feed, and folding makes none.
    return "\n".join(found).casefold().split("\n") if found else []


def word_spans(text: str) -> list[tuple[int, int]]:
    """Begin and end of each word in the text, in characters."""
    return [found.span() for found in WORD.finditer(text)]
