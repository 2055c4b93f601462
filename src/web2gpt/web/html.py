"""What several stages need of a page's HTML: its title, date and language, its paragraphs.

Parsed by lexbor (resiliparse), which builds a tree from anything, as browsers do.
"""

import re
from dataclasses import dataclass

from resiliparse.parse.html import HTMLTree

DATE = re.compile(r"\b(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))")
LANGUAGE = re.compile(r"\s*([A-Za-z]{2,3})(?:[-_][A-Za-z0-9-]*)?\s*")
DATES = (
    'meta[property="article:published_time"]',
    'meta[itemprop="datePublished"]',
    'meta[name="date"]',
    'meta[name="dc.date"]',
)
MAX_TITLE = 500  # characters


@dataclass(frozen=True)
class PageFacts:
    """What a page says about itself; language as ISO 639, a hint only."""

    title: str | None
    date: str | None
    language: str | None


def parse(html: str) -> HTMLTree:
    """The tree of a page."""
    return HTMLTree.parse(html)


def page_facts(tree: HTMLTree) -> PageFacts:
    """Title, date of publication (YYYY-MM-DD) and language, as the page's own markup has them."""
    language = LANGUAGE.fullmatch(
        _attribute(tree, "html", "lang") or _attribute(tree, "html", "xml:lang")
    )
    dates = (DATE.search(_attribute(tree, selector, "content")) for selector in DATES)
    date = next((found[1] for found in dates if found), None)
    title = " ".join((tree.title or "").split())[:MAX_TITLE]
    return PageFacts(title or None, date, language[1].lower() if language else None)


def paragraphs(tree: HTMLTree) -> list[str]:
    """The text of all ``<p>`` elements, in order, spaces collapsed, empty ones left out."""
    # A slice, for to iterate over the list itself takes time quadratic in its length.
    found = tree.document.query_selector_all("p")[:] if tree.document else ()
    texts = (" ".join(str(element.text).split()) for element in found)
    return [text for text in texts if text]


def _attribute(tree: HTMLTree, selector: str, name: str) -> str:
    """An attribute of the first element that fits, empty if there is none."""
    element = tree.document.query_selector(selector) if tree.document else None
    return (element.getattr(name) or "") if element is not None else ""
