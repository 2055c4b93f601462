"""Mend a document's characters with ftfy, and its white space.

ftfy works on each line by itself, so lines it provably leaves alone need not pass through it: those
of printable ASCII, tabs and form feeds without anything like an HTML entity. Every step of ftfy 6.3
either looks for characters outside this set (mojibake, controls, ligatures, widths, quotes, line
ends, surrogates, normalization) or for an entity. The one state it carries from line to line, that
with ``unescape_html: auto`` the first ``<`` ends the decoding of entities, is carried here too.
"""

import re
from collections.abc import Callable
from typing import Any

import ftfy

from web2gpt.config.clean import Ftfy

TOUCHED = re.compile(r"[^\t\n\x0c\x20-\x7e]|&[#0-9A-Za-z]")
TRAILING = re.compile(r"(?<![^\S\n])[^\S\n]+(?=\n)")
BLANKS = re.compile(r"(?<=\S)[^\S\n]{2,}")
EMPTY_LINES = re.compile(r"\n{3,}")

Mend = Callable[[str], str]


def text_fixer(settings: Ftfy) -> Mend:
    """``ftfy.fix_text`` under these settings, faster."""
    config = fixer_config(settings)
    entities = {"auto": "auto", "yes": True, "no": False}[settings.unescape_html]
    after_tag = config._replace(unescape_html=False) if entities == "auto" else config

    def fix(text: str) -> str:
        found = TOUCHED.search(text)
        if found is None:
            return text
        first_tag = text.find("<")
        parts, done = [], 0
        while found is not None:
            start = text.rfind("\n", 0, found.start()) + 1
            end = text.find("\n", found.start()) + 1 or len(text)
            plain = first_tag < 0 or first_tag >= start
            parts += [
                text[done:start],
                ftfy.fix_text(text[start:end], config if plain else after_tag),
            ]
            done = end
            found = TOUCHED.search(text, end)
        return "".join((*parts, text[done:]))

    return fix


def fixer_config(settings: Ftfy) -> Any:
    """ftfy's own form of the settings."""
    values = settings.model_dump()
    values["unescape_html"] = {"auto": "auto", "yes": True, "no": False}[settings.unescape_html]
    values["normalization"] = None if settings.normalization == "none" else settings.normalization
    return ftfy.TextFixerConfig(**values, explain=False)


def collapse_whitespace(text: str) -> str:
    """Runs of blanks inside a line to one space, of empty lines to one; indentation stays."""
    text = TRAILING.sub("", text.rstrip())
    return EMPTY_LINES.sub("\n\n", BLANKS.sub(" ", text)).lstrip("\n")
