"""Files as words of a shell command: numbered ones as ranges that bash expands.

A command is handed over as one string, which Linux limits to 128 KiB; the files of a thousand
shards, or every sixteenth of a large crawl's archives, become {0000..1023} or {00003..89987..16}.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby

NUMBERED = re.compile(r"(.*?)([0-9]*)([^0-9]*|[^0-9]*\.bz2)", re.DOTALL)
MOST_DIGITS = 18  # bash counts in 64 bits


def in_ranges(before: str, files: Sequence[str]) -> str:
    """The files in their order, each after ``before``."""
    words = []
    for (head, _, tail), group in groupby(map(_parts, files), _form):
        for numbers in _runs([number for _, number, _ in group]):
            words.append(f"{_quoted(before + head)}{_range(numbers)}{_quoted(tail)}")
    return " ".join(words)


def _parts(file: str) -> tuple[str, str, str]:
    """What stands before the file's last number, that number, and what stands after it."""
    found = NUMBERED.fullmatch(file)
    assert found is not None  # it matches every string
    return found[1], found[2], found[3]


def _form(parts: tuple[str, str, str]) -> tuple[str, int, str]:
    """Equal for files that differ in their number alone."""
    head, number, tail = parts
    return head, len(number), tail


def _runs(numbers: Sequence[str]) -> Iterator[Sequence[str]]:
    """The numbers in pieces of one step each."""
    start = 0
    while start < len(numbers):
        end = start + 1
        step = _step(numbers, start)
        while step > 0 and end < len(numbers) and _step(numbers, end - 1) == step:
            end += 1
        yield numbers[start:end]
        start = end


def _step(numbers: Sequence[str], at: int) -> int:
    """From a number to the next; 0 if there is none, or it has too many digits."""
    pair = numbers[at : at + 2]
    is_counted = len(pair) == 2 and 0 < len(pair[0]) <= MOST_DIGITS
    return int(pair[1]) - int(pair[0]) if is_counted else 0


def _range(numbers: Sequence[str]) -> str:
    if len(numbers) == 1:
        return numbers[0]
    step = _step(numbers, 0)
    return f"{{{numbers[0]}..{numbers[-1]}{f'..{step}' if step > 1 else ''}}}"


def _quoted(text: str) -> str:
    return shlex.quote(text) if text else ""
