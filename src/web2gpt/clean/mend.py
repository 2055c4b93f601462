"""Mend a document's characters with ftfy, and its white space.

ftfy works on each line by itself, so only lines on which it has something to decide pass through
it. Of its steps (6.3), all but three concern certain characters or character references alone, and
a line with none of them passes unchanged; ``_suspects`` makes the list from ftfy's own tables. The
three others are

* mojibake, which ftfy looks for only where its ``BADNESS_RE`` matches: each alternative of that
  needs two characters beyond ASCII side by side, or one of ``ALONE`` (a test takes the expression
  apart to show it);
* straight quotes for curly ones, and normalization, which are done here on all plain lines at once:
  a line feed is never part of a composition.

As ftfy repeats its steps until nothing changes, the result must be one that they leave alone. The
one state that it carries from line to line, that with ``unescape_html: auto`` the first ``<`` ends
the decoding of references, is carried here too.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import ftfy
from ftfy import chardata
from ftfy.badness import is_bad

from web2gpt.config.clean import Ftfy

NOTABLE = re.compile(r"[^\t\n\x0c -%'-~]")  # all that a suspect can begin with
ALONE = "ŒœÂÃ\x80-\x9f"
LINE_BREAKS = "\r\u2028\u2029"
SINGLE_QUOTES, DOUBLE_QUOTES = "\u02bc\u2018\u2019\u201a\u201b", "\u201c\u201d\u201e\u201f"
BLANKS = re.compile(r"(?<=\S)[^\S\n]{2,}")
OTHER_BLANKS = re.compile(r"[^\S\n ]")
EMPTY_LINES = re.compile(r"\n{3,}")

Mend = Callable[[str], str]


def text_fixer(settings: Ftfy) -> Mend:
    """``ftfy.fix_text`` under these settings, faster."""
    config = fixer_config(settings)
    after_tag = config
    if settings.unescape_html == "auto":
        after_tag = config._replace(unescape_html=False)
    suspects, even_alone = _suspects()
    straighten = _straightener(config, suspects)

    def fix(text: str) -> str:
        if _has_line_of(text, settings.max_decode_length):
            return str(ftfy.fix_text(text, config))  # which cuts it
        first_tag = text.find("<")
        parts, done = [], 0
        for start, end in _lines_with(suspects, text):
            line = text[start:end]
            before_tag = first_tag < 0 or first_tag >= start
            if even_alone.search(line) or is_bad(line):
                fixed = ftfy.fix_text(line, config if before_tag else after_tag)
            else:
                fixed = straighten(line, config if before_tag else after_tag)
            parts += [straighten(text[done:start], config), fixed]
            done = end
        return "".join((*parts, straighten(text[done:], config)))

    return fix


def _has_line_of(text: str, size: int) -> bool:
    """Whether a line has so many characters, without its end."""
    return len(text) >= size and max(map(len, text.split("\n"))) >= size


def _suspects() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What ftfy may change, but for quotes and normalization, and the part of it that is no mere
    occasion for a look at the line: characters and references that it changes or removes."""
    tables = (chardata.LIGATURES, chardata.WIDTH_MAP, chardata.CONTROL_CHARS)
    listed = {character for table in tables for character in map(chr, table)}
    changed = "".join(map(re.escape, sorted(listed))) + LINE_BREAKS + "\ud800-\udfff" + ALONE
    reference = chardata.HTML_ENTITY_RE.pattern
    even_alone = f"[{changed}]|{reference}"
    return re.compile(rf"{even_alone}|[^\x00-\x7f]{{2}}"), re.compile(even_alone)


def _lines_with(suspects: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Begin and end, line feed included, of each line in which a suspect is found."""
    done = place = 0
    while found := NOTABLE.search(text, place):
        place = found.end()
        if suspects.match(text, found.start()):
            start = text.rfind("\n", done, place) + 1 or done
            done = place = text.find("\n", place) + 1 or len(text)
            yield start, done


def _straightener(config: Any, suspects: re.Pattern[str]) -> Callable[[str, Any], str]:
    """Quotes and normalization of whole lines without suspects, as ftfy does them."""

    def once(text: str) -> str:
        if config.uncurl_quotes:
            text = uncurl_quotes(text)
        return unicodedata.normalize(config.normalization, text) if config.normalization else text

    def straighten(text: str, fallback: Any) -> str:
        if text.isascii():
            return text
        fixed = once(text)
        # What was made of it must be plain in its turn; otherwise ftfy would go on.
        if fixed == text or (once(fixed) == fixed and not any(_lines_with(suspects, fixed))):
            return fixed
        return str(ftfy.fix_text(text, fallback))

    return straighten


def uncurl_quotes(text: str) -> str:
    """ftfy's function of this name, without a regular expression."""
    for quotes, straight in ((SINGLE_QUOTES, "'"), (DOUBLE_QUOTES, '"')):
        for quote in quotes:
            text = text.replace(quote, straight)
    return text


def fixer_config(settings: Ftfy) -> Any:
    """ftfy's own form of the settings."""
    values = settings.model_dump()
    values["unescape_html"] = {"auto": "auto", "yes": True, "no": False}[settings.unescape_html]
    values["normalization"] = None if settings.normalization == "none" else settings.normalization
    return ftfy.TextFixerConfig(**values, explain=False)


def collapse_whitespace(text: str) -> str:
    """Runs of blanks inside a line to one space, of empty lines to one; indentation stays."""
    text = "\n".join([line.rstrip() for line in text.split("\n")]).rstrip()
    if "  " in text or OTHER_BLANKS.search(text):
        text = BLANKS.sub(" ", text)
    return EMPTY_LINES.sub("\n\n", text).lstrip("\n")
