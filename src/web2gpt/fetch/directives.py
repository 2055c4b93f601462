"""What a page itself asks of crawlers: the X-Robots-Tag of its answer, and robots in its <meta>.

Both hold directives such as ``noindex``, for all crawlers or for one by name, as the large search
engines document them (RFC 9309 leaves them out). Which directives count is the user's policy.
"""

import re

from web2gpt.fetch.exchange import Exchange

LOOKED_AT = 64 << 10  # bytes of a page in which its <head> must lie
META = re.compile(rb"<meta[\s/][^>]{0,4000}>")
ATTRIBUTE = re.compile(rb"""([a-z-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
VALUED = frozenset((
    "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview",
))  # fmt: skip
"""Directives with a value after a colon, where otherwise a crawler's name would stand."""


def refused_by_page(exchange: Exchange, unwanted: frozenset[str], agent: str) -> str | None:
    """``robots_tag`` or ``robots_meta`` if the page asks ``agent`` for one of ``unwanted``."""
    if not unwanted:
        return None
    if not unwanted.isdisjoint(header_directives(exchange, agent)):
        return "robots_tag"
    if not unwanted.isdisjoint(meta_directives(exchange.body, agent)):
        return "robots_meta"
    return None


def header_directives(exchange: Exchange, agent: str) -> set[str]:
    """The directives for ``agent`` in all fields named X-Robots-Tag, in lower case."""
    found = set[str]()
    for name, value in exchange.headers:
        if name.lower() == b"x-robots-tag":
            found |= _for_agent(value.decode("latin-1").lower(), agent.lower())
    return found


def _for_agent(value: str, agent: str) -> set[str]:
    """The directives of one field: a crawler's name holds for all that follow it."""
    found, is_meant = set[str](), True
    for part in value.split(","):
        name, colon, rest = (text.strip() for text in part.partition(":"))
        if colon and name not in VALUED:
            is_meant, name = name in ("*", agent), rest
        if is_meant:
            found.add(name)
    return found


def meta_directives(body: bytes, agent: str) -> set[str]:
    """The directives for ``agent`` in a page's <meta> elements, in lower case."""
    start, name = body[:LOOKED_AT].lower(), agent.lower().encode()
    if b"robots" not in start and name not in start:
        return set()
    found = set[str]()
    for element in META.findall(_without_comments(start)):
        fields = {key: b"".join(values) for key, *values in ATTRIBUTE.findall(element)}
        if fields.get(b"name", b"").strip() in (b"robots", name):
            content = fields.get(b"content", b"").decode("latin-1")
            found |= {part.partition(":")[0].strip() for part in content.split(",")}
    return found


def _without_comments(text: bytes) -> bytes:
    """``text`` up to the end of the head, without comments."""
    parts, place = [], 0
    while (start := text.find(b"<!--", place)) >= 0:
        parts.append(text[place:start])
        end = text.find(b"-->", start + 4)
        place = end + 3 if end >= 0 else len(text)
    return b"".join((*parts, text[place:])).partition(b"<body")[0]
