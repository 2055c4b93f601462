"""The site's honest part: each article once, spread over hosts under different domains."""

from collections.abc import Sequence
from itertools import groupby

from web2gpt.demo.markup import Link, article_body, page
from web2gpt.demo.pages import Article
from web2gpt.demo.site import Site

NUMERICS, METHODS = "www.numerics.example", "methods.quietscience.test"
TABLES = "tables.shelfmark.example"
LIBRARY, READING_ROOM = "docs.pylibrary.example", "reading-room.test"
NAMES = {
    NUMERICS: "Numerics Handbook",
    METHODS: "Quiet Science",
    TABLES: "Shelfmark Tables",
    LIBRARY: "The Python Library",
    READING_ROOM: "Reading Room",
}
MOVED = 3
"""Articles that are listed under an old address only, which redirects to the new one."""


def host_of(article: Article) -> str:
    """The host that an article stands on, by its package."""
    match article.package:
        case "numpy":
            return NUMERICS
        case "scipy":
            return METHODS
        case "polars":
            return TABLES
        case name:
            return LIBRARY if name < "j" else READING_ROOM


def add_library(site: Site, articles: Sequence[Article]) -> None:
    """Add all articles; a few of them moved, one of these to another host."""
    moved = {article.path for article in articles[:: len(articles) // MOVED][:MOVED]}
    for host, group in groupby(sorted(articles, key=host_of), host_of):
        shelf = list(group)
        for number, article in enumerate(shelf):
            around = shelf[max(number - 2, 0) : number + 3]
            links = [Link(f"{neighbour.path}.html", neighbour.title) for neighbour in around]
            text = page(NAMES[host], article.title, article_body(article), links)
            url = site.add(host, f"{article.path}.html", text, listed=article.path not in moved)
            if article.path in moved:
                _redirect(site, host, article, url)
        index = [Link(f"{article.path}.html", article.title) for article in shelf[:40]]
        body = f"<h1>{NAMES[host]}</h1>"
        site.add(host, "/index.html", page(NAMES[host], "Contents", body, index), listed=False)


def _redirect(site: Site, host: str, article: Article, url: str) -> None:
    other = host == READING_ROOM
    old = site.redirect(
        LIBRARY if other else host,
        f"/old{article.path}.html",
        url if other else f"{article.path}.html",
        302 if other else 301,
    )
    site.plant("redirects", "redirect", old)
