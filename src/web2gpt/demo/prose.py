"""Turn a documentation string into blocks of readable prose.

What is kept: paragraphs, list items, descriptions of parameters, and a little code. What is left
out: anything that names a path or an address of the machine (the demo must be the same on all
machines and tell nothing about them), tables, directives, references, long examples.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Block:
    """A paragraph, a list item, a heading or a piece of code; ``text`` is plain, not HTML."""

    kind: Literal["p", "li", "h3", "pre"]
    text: str


FOLDERS = "usr|home|root|tmp|var|opt|etc|work|lib|lib64|private|mnt|srv|Users|proc|dev"
OWN_PATHS = sorted(str(path) for path in {Path.home(), Path(sys.prefix)} if path.parent != path)
MACHINE = re.compile(
    rf"(?<![\w.:/])~?/(?:{FOLDERS})\b|[A-Z]:\\\w|0x[0-9a-fA-F]{{6,}}|site-packages|dist-packages"
    + "".join(f"|{re.escape(path)}" for path in OWN_PATHS)
)
LEFT_OUT = {"see also", "references", "examples", "example", "attributes", "methods"}
DROPPED_DIRECTIVE = re.compile(r"^\s*\.\. ")
FIELD = re.compile(r"^(\*{0,2}[A-Za-z_][\w, .*]*?) ?: (.{1,120})$|^(\*{0,2}[A-Za-z_]\w*)$")
ITEM = re.compile(r"^\s*(?:[-*•+]|\d+[.)]) +(?=\S)")
ROLE = re.compile(r":[a-z:]+:`~?([^`<]+?)(?: ?<[^`>]*>)?`")
LINK = re.compile(r"`([^`<]+?) ?<[^`>]*>`_{1,2}")
QUOTED = re.compile(r"`{1,2}([^`]+)`{1,2}_?")
FOOTNOTE = re.compile(r"\s*\[\d+\]_")
UNDERLINE = re.compile(r"^\s*([-=~^*#])\1{2,}\s*$")
MAX_CODE = 8  # lines


def blocks(doc: str) -> Iterator[Block]:
    """The readable parts of a documentation string, in order."""
    section, codes = "", 0
    for chunk in _chunks(doc):
        heading, body = _heading(chunk)
        if heading is not None:
            section = heading.lower()
            if section not in LEFT_OUT:
                yield Block("h3", heading)
        if not body or section in LEFT_OUT or MACHINE.search("\n".join(body)):
            continue
        for block in _chunk_blocks(body):
            if block.kind == "pre":
                codes += 1
            if block.kind != "pre" or codes == 1:
                yield block


def _chunks(doc: str) -> Iterator[list[str]]:
    """Runs of lines between empty ones; a directive is left out with all that it indents."""
    chunk: list[str] = []
    hidden: int | None = None  # indentation of the directive being left out
    for line in [*doc.expandtabs().splitlines(), ""]:
        indent = len(line) - len(line.lstrip())
        if hidden is not None and line.strip() and indent <= hidden:
            hidden = None
        if DROPPED_DIRECTIVE.match(line):
            hidden = indent
        if line.strip() and hidden is None:
            chunk.append(line.rstrip())
        elif chunk and not line.strip():
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _heading(chunk: list[str]) -> tuple[str | None, list[str]]:
    """A heading underlined with signs, and the rest of its chunk."""
    if len(chunk) > 1 and UNDERLINE.match(chunk[1]) and len(chunk[0].strip()) < 60:
        return chunk[0].strip(), chunk[2:]
    if len(chunk) > 2 and UNDERLINE.match(chunk[0]) and UNDERLINE.match(chunk[2]):
        return chunk[1].strip(), chunk[3:]
    return None, chunk


def _chunk_blocks(lines: list[str]) -> Iterator[Block]:
    if any(line.lstrip().startswith(">>>") for line in lines):
        if len(lines) <= MAX_CODE:
            yield Block("pre", _undent(lines))
        return
    if any(UNDERLINE.match(line) or line.count("  ") > 3 or "|" in line for line in lines):
        return  # a table
    for kind, words in _pieces(lines):
        text = clean(" ".join(words))
        if is_prose(text):
            yield Block(kind, text)


def _pieces(lines: list[str]) -> Iterator[tuple[Literal["p", "li"], list[str]]]:
    """Split a chunk at list items and at fields followed by an indented description."""
    kind: Literal["p", "li"] = "p"
    piece: list[str] = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        field = FIELD.match(line) and _indent(following) > _indent(line)
        if field or ITEM.match(line):
            if piece:
                yield kind, piece
            kind = "li"
            piece = [f"{line.strip()}:" if field else ITEM.sub("", line)]
        else:
            if piece and kind == "li" and _indent(line) == 0:
                yield kind, piece
                kind, piece = "p", []
            piece.append(line.strip())
    if piece:
        yield kind, piece


def clean(text: str) -> str:
    """Plain words: reStructuredText's marks taken off, spaces made single."""
    for pattern in (ROLE, LINK, QUOTED):
        text = pattern.sub(r"\1", text)
    text = FOOTNOTE.sub("", text).replace("**", "")
    return " ".join(text.split()).removesuffix(":" if text.endswith("::") else "\0")


def is_prose(text: str) -> bool:
    """Whether this reads as a sentence or more: enough words, mostly made of letters."""
    words = [word for word in text.split() if word.strip(".,:;()'\"").isalpha()]
    return len(words) >= 5 and sum(map(len, words)) >= 0.6 * len(text.replace(" ", ""))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _undent(lines: list[str]) -> str:
    margin = min(map(_indent, lines))
    return "\n".join(line[margin:] for line in lines)
