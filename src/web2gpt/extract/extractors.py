"""The three ways from a page's HTML to its text.

Invariant: a page's result depends on the page alone, never on pages before it, on the clock or on
the process. Hence trafilatura's memory of texts it has seen stays off, and the latest date it may
find is the day of the fetch, not today.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from web2gpt.web.charset import decode_page
from web2gpt.web.html import PageFacts, page_facts, paragraphs, parse
from web2gpt.web.text import writable

LAST_DAY = "2100-01-01"  # for a page whose archive does not say when it was fetched


@dataclass(frozen=True)
class Page:
    """A page as it was fetched. ``charset`` is the HTTP header's label, ``date`` YYYY-MM-DD."""

    body: bytes
    url: str | None = None
    charset: str | None = None
    date: str | None = None


@dataclass(frozen=True)
class Extracted:
    """What a page holds; an empty text means that there is nothing in it."""

    text: str
    title: str | None
    date: str | None
    language: str | None


Extractor = Callable[[Page], Extracted]


def extractor(name: str) -> Extractor:
    """The extractor of this name, its libraries loaded."""
    if name == "trafilatura":
        importlib.import_module("trafilatura")
    methods = {"trafilatura": _trafilatura, "resiliparse": _resiliparse, "paragraphs": _paragraphs}
    method = methods[name]

    def extract(page: Page) -> Extracted:
        # NULs are dropped before parsing: libxml2 would take the first for the page's end.
        html = writable(decode_page(page.body, page.charset))
        found = method(html, page)
        title, date = _clean(found.title or ""), found.date
        return Extracted(_clean(found.text), title or None, date, found.language)

    return extract


def reset_caches(name: str) -> None:
    """Give back the memory that an extractor's caches hold."""
    if name == "trafilatura":
        importlib.import_module("trafilatura.meta").reset_caches()


def _trafilatura(html: str, page: Page) -> Extracted:
    trafilatura: Any = importlib.import_module("trafilatura")
    facts = page_facts(parse(html))
    found = trafilatura.bare_extraction(
        html,
        url=page.url,
        with_metadata=True,
        include_comments=False,
        deduplicate=False,
        date_extraction_params={
            "original_date": True,
            "extensive_search": False,
            "max_date": page.date or LAST_DAY,
        },
    )
    if found is None or not found.text:
        return Extracted("", facts.title, facts.date, facts.language)
    title, date = found.title or facts.title, found.date or facts.date
    return Extracted(found.text, title, date, facts.language)


def _resiliparse(html: str, page: Page) -> Extracted:
    from resiliparse.extract.html2text import extract_plain_text

    tree = parse(html)
    facts = page_facts(tree)
    text = extract_plain_text(tree, main_content=True, alt_texts=False, comments=False)
    return _with(facts, text)


def _paragraphs(html: str, page: Page) -> Extracted:
    tree = parse(html)
    return _with(page_facts(tree), "\n\n".join(paragraphs(tree)))


def _with(facts: PageFacts, text: str) -> Extracted:
    return Extracted(text, facts.title, facts.date, facts.language)


def _clean(text: str) -> str:
    """Entities such as &#55296; can bring back what was taken out of the source."""
    return writable(text).strip()
