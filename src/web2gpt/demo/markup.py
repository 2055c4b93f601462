"""Write pages as a web site would: the article in the middle of navigation, header and footer."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from web2gpt.demo.pages import Article, Section
from web2gpt.demo.prose import Block


@dataclass(frozen=True)
class Link:
    """An entry of the navigation."""

    href: str
    text: str


def article_body(article: Article) -> str:
    """The article's own HTML: its title, then each section under its name."""
    parts = [f"<h1>{escape(article.title)}</h1>"]
    parts += [_section(section) for section in article.sections]
    return "\n".join(parts)


def text_body(title: str, paragraphs: Iterable[str]) -> str:
    """The HTML of plain paragraphs under a title."""
    return "\n".join(
        [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(text)}</p>" for text in paragraphs)]
    )


def page(site: str, title: str, body: str, links: Iterable[Link], *, language: str = "en") -> str:
    """A whole page of the site named ``site``."""
    entries = "".join(
        f'<li><a href="{escape(link.href)}">{escape(link.text)}</a></li>' for link in links
    )
    return f"""<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<title>{escape(title)} - {escape(site)}</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<header class="site-header"><a href="/">{escape(site)}</a>
<form action="/search" method="get"><input name="q" placeholder="Search"></form></header>
<nav class="menu"><ul>{entries}</ul></nav>
<main><article>
{body}
</article></main>
<aside class="sidebar"><ul>{entries}</ul></aside>
<footer class="site-footer"><a href="/imprint">Imprint</a> <a href="/privacy">Privacy</a>
Made with care by {escape(site)}</footer>
</body>
</html>
"""


def _section(section: Section) -> str:
    parts = [f"<section><h2>{escape(section.name)}</h2>"]
    in_list = False
    for block in section.blocks:
        if in_list != (block.kind == "li"):
            in_list = not in_list
            parts.append("<ul>" if in_list else "</ul>")
        parts.append(_block(block))
    parts.append("</ul></section>" if in_list else "</section>")
    return "\n".join(parts)


def _block(block: Block) -> str:
    return f"<{block.kind}>{escape(block.text, quote=False)}</{block.kind}>"
