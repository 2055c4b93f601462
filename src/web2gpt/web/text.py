"""Text that can be written as UTF-8 JSON and read by every tool."""

import re

UNWRITABLE = re.compile("[\x00\ud800-\udfff]")


def writable(text: str) -> str:
    """The text without NULs and lone surrogates, which UTF-8 files cannot or should not hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return UNWRITABLE.sub("", text)
    return text.replace("\0", "") if "\0" in text else text
