"""The guide's pages, and what stands in them: links, code, commands."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(REPOSITORY)
    for path in (REPOSITORY / "README.md", REPOSITORY / "config/README.md",
                 *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "workflow").rglob("*.md"))
)  # fmt: skip
TUTORIALS = [page for page in PAGES if page.parent.name == "tutorials"]
STOPS = {"|", "||", "&&", ";", ">", "2>", "<", "&", "then"}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, and its text."""

    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The name of the file that it is: ``# mine.yaml`` in its first line."""
        named = re.match(r"# ([\w.-]+\.yaml)\n", self.text)
        return named[1] if named else None


def text_of(page: Path) -> str:
    return (REPOSITORY / page).read_text()


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)
    return [Block(language, text) for language, text in found]


def code(page: Path) -> Iterator[str]:
    """Every piece of code: fenced blocks, indented ones, and what stands between backticks."""
    text = text_of(page)
    yield from (block.text for block in blocks(page) if block.language != "python")
    text = re.sub(r"^```\w*\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from re.findall(r"(?:^ {4,}\S.*\n)+", text, re.MULTILINE)
    inline = re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", text)
    yield from (piece.replace("\\|", "|") for piece in inline)


def commands(page: Path, program: str) -> Iterator[list[str]]:
    """The arguments of each call of a program in a page's code."""
    for piece in code(page):
        joined = re.sub(r"\\\n\s*", " ", piece)
        for line in joined.splitlines() if piece.count("\n") > 1 else [" ".join(joined.split())]:
            yield from _calls(line, program)


def _calls(line: str, program: str) -> Iterator[list[str]]:
    try:
        words = shlex.split(line.split(" # ", maxsplit=1)[0].replace("…", "..."))
    except ValueError:
        words = line.split()
    while program in words:
        words = words[words.index(program) + 1 :]
        end = next((place for place, word in enumerate(words) if word in STOPS or word == program),
                   len(words))  # fmt: skip
        yield words[:end]
