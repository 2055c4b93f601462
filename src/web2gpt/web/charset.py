"""The character set of a page: byte order mark, HTTP header, strict UTF-8, meta, detection.

The first of these that decodes the whole page wins; a label that does not fit the bytes is passed
over, for servers and authors are often wrong. If none fits, the page is decoded by the first label
that was given (else as UTF-8), broken sequences replaced. Labels mean what the WHATWG's Encoding
standard says: ``latin1`` is windows-1252.
"""

import codecs
import re
from collections.abc import Iterator

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
META_BYTES = 4096  # the standard looks at 1024; pages with long scripts before it are common
META = re.compile(rb"""<meta[^>]{0,1000}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
WIDER = {"gbk": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932"}  # as browsers decode them


def decode_page(body: bytes, http_charset: str | None = None) -> str:
    """The text of a page, whatever its bytes; ``http_charset`` is the label the server gave."""
    for mark, encoding in MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, errors="replace")
    first = ""
    for encoding in _candidates(body, http_charset):
        first = first or encoding
        try:
            return body.decode(encoding)
        except UnicodeDecodeError:
            continue
    return body.decode(first or "utf-8", errors="replace")


def meta_charset(body: bytes) -> str | None:
    """The character set that the page's own head declares. UTF-16 there cannot be true."""
    found = META.search(body[:META_BYTES])
    encoding = python_encoding(found[1].decode("ascii", "replace")) if found else None
    return "utf-8" if encoding and encoding.startswith("utf-16") else encoding


def python_encoding(label: str) -> str | None:
    """Python's codec for a label of the Encoding standard, None if it has none."""
    name = map_encoding_to_html5(label, fallback_utf8=False)
    if name is None:
        return None
    try:
        return WIDER.get(name, codecs.lookup(name).name)
    except LookupError:
        return None


def _candidates(body: bytes, http_charset: str | None) -> Iterator[str]:
    """Encodings to try in turn; UTF-8 is tried even where nothing names it."""
    if header := python_encoding((http_charset or "").strip("\"' ")):
        yield header
    if _is_utf8(body):
        yield "utf-8"
    if meta := meta_charset(body):
        yield meta
    if detected := python_encoding(detect_encoding(body) or ""):
        yield detected


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
