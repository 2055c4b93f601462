"""Lay the documentation of many modules out as pages of one to two thousand words at most.

A module gets a page with its own words and its functions; a class with much to say gets a page of
its own; modules with little are gathered into pages of notes. A paragraph stands once in the whole
site, so that only the mirrors, planted on purpose, are near-duplicates.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from web2gpt.demo.prose import Block, blocks

MIN_CHARACTERS = 1_500  # of prose on a page: well above the cleaner's floor
MAX_CHARACTERS = 9_000  # where a page is continued on the next
CLASS_PAGE = 2_000  # characters from which a class gets a page of its own


@dataclass(frozen=True)
class Section:
    """A named thing and what is said about it."""

    name: str
    blocks: tuple[Block, ...]

    @property
    def characters(self) -> int:
        return sum(len(block.text) for block in self.blocks if block.kind != "pre")


@dataclass(frozen=True)
class Article:
    """What stands on a page: ``path`` is the URL's path without its ending."""

    package: str
    path: str
    title: str
    sections: tuple[Section, ...]

    @property
    def characters(self) -> int:
        return sum(section.characters for section in self.sections)


@dataclass
class _Writer:
    """Knows which documentation was read, which paragraphs were printed, and what is left over for
    pages of notes."""

    docs: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    leftover: list[Section] = field(default_factory=list)
    notes: int = 0

    def section(self, name: str, *docs: str) -> Section:
        fresh: list[Block] = []
        for doc in docs:
            if doc in self.docs:
                continue
            self.docs.add(doc)
            for block in blocks(doc):
                if block.kind == "h3" or block.text not in self.seen:
                    fresh.append(block)
                self.seen.add(block.text)
        return Section(name, tuple(_without_empty_headings(fresh)))


def lay_out(modules: Iterable[dict[str, Any]]) -> Iterator[Article]:
    """All articles, in the modules' order."""
    writer = _Writer()
    package = ""
    for module in modules:
        if module["name"].partition(".")[0] != package:
            yield from _flush(writer, package)
            package = module["name"].partition(".")[0]
        yield from _module_articles(writer, package, module)
    yield from _flush(writer, package, last=True)


def _module_articles(writer: _Writer, package: str, module: dict[str, Any]) -> Iterator[Article]:
    name, path = module["name"], "/" + module["name"].replace(".", "/")
    own = [writer.section(f"About {name}", module["doc"])]
    for entry in module["entries"]:
        docs = [entry["doc"], *(member["doc"] for member in entry["members"])]
        section = writer.section(entry["name"], *docs)
        if entry["members"] and section.characters >= CLASS_PAGE:
            title = f"{name}.{entry['name']}"
            yield from _continued(package, f"{path}/class-{entry['name']}", title, [section])
        else:
            own.append(section)
    own = [section for section in own if section.characters]
    if sum(section.characters for section in own) >= MIN_CHARACTERS:
        yield from _continued(package, path, f"The module {name}", own)
    else:
        writer.leftover += own


def _flush(writer: _Writer, package: str, *, last: bool = False) -> Iterator[Article]:
    """Pages of notes from what was too little for pages of its own."""
    characters = sum(section.characters for section in writer.leftover)
    if characters >= (MIN_CHARACTERS if last else MAX_CHARACTERS // 2):
        writer.notes += 1
        path, title = f"/notes/{writer.notes}", f"Notes on smaller modules, part {writer.notes}"
        yield from _continued(package, path, title, writer.leftover)
        writer.leftover = []


def _continued(
    package: str, path: str, title: str, sections: Iterable[Section]
) -> Iterator[Article]:
    """One article, or several when it is long; the last part is never a short one."""
    parts: list[list[Section]] = [[]]
    for section in sections:
        for piece in _split(section):
            full = sum(part.characters for part in parts[-1])
            if full >= MIN_CHARACTERS and full + piece.characters > MAX_CHARACTERS:
                parts.append([])
            parts[-1].append(piece)
    if len(parts) > 1 and sum(part.characters for part in parts[-1]) < MIN_CHARACTERS:
        parts[-2:] = [parts[-2] + parts[-1]]
    for number, part in enumerate(parts, 1):
        suffix, of = (f"-{number}", f", part {number}") if number > 1 else ("", "")
        yield Article(package, f"{path}{suffix}", f"{title}{of}", tuple(part))


def _split(section: Section) -> Iterator[Section]:
    """A section in pieces that fit on a page."""
    piece: list[Block] = []
    characters = 0
    for block in section.blocks:
        if characters + len(block.text) > MAX_CHARACTERS - MIN_CHARACTERS and piece:
            yield Section(section.name, tuple(piece))
            piece, characters = [], 0
        piece.append(block)
        characters += len(block.text)
    if piece:
        yield Section(section.name, tuple(piece))


def _without_empty_headings(found: list[Block]) -> Iterator[Block]:
    for block, following in zip_longest(found, found[1:]):
        if block.kind != "h3" or (following is not None and following.kind != "h3"):
            yield block
