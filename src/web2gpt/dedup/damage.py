"""Whether ftfy would change a text: of several copies such a one ranks last.

ftfy decides, but it takes milliseconds for a page. What it surely does is foreseen: characters that
it always replaces or drops, and text that is not in NFC, are damage; and lines that have no
control character, no character reference and no sign of mojibake (by ftfy's own measure, taken
where there are characters beyond ASCII) stay as they are. Only the others are handed to it.
"""

import re
import unicodedata
from collections.abc import Iterator

import ftfy
from ftfy import chardata
from ftfy.badness import is_bad

from web2gpt.dedup.text import beyond_ascii

CHARACTERS = 1 << 20  # how much of a text is looked at
REFERENCE = re.compile(r"&#?[0-9A-Za-z]{1,24};")
SIGNS = 4  # characters; a sign of mojibake has at most two in ASCII on a side

_acted_on = bytes(set(range(32)) - {9, 10}) + b"\x7f"  # in ASCII, but for references
MARKED = bytes(0 if byte in _acted_on else 1 for byte in range(256))
_always_changed = [chr(code) for code in (*chardata.LIGATURES, *chardata.WIDTH_MAP) if code > 127]
_always_changed += [chr(code) for code in chardata.CONTROL_CHARS if code > 127]
_always_changed += ["\u2028", "\u2029", "\ud800-\udfff"]
_quotes = chardata.SINGLE_QUOTE_RE.pattern[1:-1] + chardata.DOUBLE_QUOTE_RE.pattern[1:-1]
ALWAYS_CHANGED = re.compile(f"[{''.join(_always_changed)}{_quotes}]")


def is_damaged(text: str) -> bool:
    """Whether ``ftfy.fix_text`` would change the text, seen on its first million characters.

    ftfy mends line by line. Past a ``<`` it leaves character references alone.
    """
    text = text[:CHARACTERS]
    if text.isascii() and _is_plain(text):
        return False
    parts = list(_strange_parts(text))
    strange = "\n".join(parts)
    if ALWAYS_CHANGED.search(strange) or not unicodedata.is_normalized("NFC", strange):
        return True
    if _is_plain(text) and not any(map(is_bad, parts)):
        return False
    markup: bool | str = "auto"
    for line in text.split("\n"):
        if "<" in line:
            markup = False
        if _is_doubtful(line) and ftfy.fix_text(line, unescape_html=markup) != line:
            return True
    return False


def _is_doubtful(line: str) -> bool:
    return not _is_plain(line) or (not line.isascii() and any(map(is_bad, _strange_parts(line))))


def _is_plain(text: str) -> bool:
    """Whether there is no control character and no character reference."""
    if "&" in text and REFERENCE.search(text):
        return False
    return b"\0" not in text.encode(errors="surrogatepass").translate(MARKED)


def _strange_parts(text: str) -> Iterator[str]:
    """The parts of each line that have characters beyond ASCII, with what stands around them."""
    for start, end in beyond_ascii(text, gap=SIGNS):
        yield from text[max(start - SIGNS, 0) : end + SIGNS].split("\n")
