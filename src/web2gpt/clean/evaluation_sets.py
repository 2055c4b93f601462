"""The n-grams of evaluation sets: JSON lines, or text.

Of a JSON line every string counts as a text of its own, at any depth: questions, passages and
answers alike. Of a text file every paragraph does, or every line if no line is empty. A text of at
least ``ngram`` words gives all its n-grams; one of at least ``min_ngram`` words counts whole;
shorter ones are left out, for they would be found everywhere.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from web2gpt.clean.folded_words import folded_words
from web2gpt.clean.ngrams import Ngram
from web2gpt.config.clean import Decontaminate
from web2gpt.errors import InputError
from web2gpt.io.compression import is_json_lines
from web2gpt.io.shards import BadLine, read_jsonl, read_lines


def evaluation_ngrams(settings: Decontaminate) -> dict[Ngram, list[str]]:
    """Each n-gram with the files it stands in, in order of first appearance.

    Raises ``InputError`` for a file that cannot be read, or that has no n-gram.
    """
    found: dict[Ngram, list[str]] = {}
    for name in settings.against:
        before = len(found)
        count = 0
        for text in _texts(Path(name)):
            for ngram in text_ngrams(folded_words(text), settings):
                count += 1
                files = found.setdefault(ngram, [])
                if not files or files[-1] != name:
                    files.append(name)
        if count == 0 and len(found) == before:
            raise InputError(
                f"{name}: no text of {settings.min_ngram} words or more in it; "
                "decontaminate.against names JSONL or text files."
            )
    return found


def text_ngrams(words: list[str], settings: Decontaminate) -> Iterable[Ngram]:
    """The n-grams of one evaluation text."""
    n = settings.ngram
    if len(words) >= n:
        return (tuple(words[start : start + n]) for start in range(len(words) - n + 1))
    return (tuple(words),) if len(words) >= settings.min_ngram else ()


def _texts(path: Path) -> Iterator[str]:
    if is_json_lines(path):
        for record in read_jsonl(path):
            if isinstance(record, BadLine):
                raise InputError(f"{path}: line {record.line}: {record.reason}; mend the file.")
            yield from _strings(record)
    else:
        yield from _paragraphs(path)


def _strings(value: Any) -> Iterator[str]:
    """All strings inside a JSON value, in order, however deep they stand."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, dict | list):
            waiting += reversed(inner.values() if isinstance(inner, dict) else inner)


def _paragraphs(path: Path) -> Iterator[str]:
    lines = [_line(path, number, line) for number, line in read_lines(path)]
    if all(line.strip() for line in lines):
        yield from lines
        return
    paragraph: list[str] = []
    for line in (*lines, ""):
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield "\n".join(paragraph)
            paragraph = []


def _line(path: Path, number: int, line: bytes | BadLine) -> str:
    if isinstance(line, BadLine):
        raise InputError(f"{path}: line {number}: {line.reason}; mend the file.")
    return line.decode(errors="replace")
