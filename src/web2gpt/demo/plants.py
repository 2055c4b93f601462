"""What the web does to a crawler, planted: mirrors, other languages, missing and forbidden pages.

Each plant is noted with the stage and the reason that should report it.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files

from web2gpt.demo.library import LIBRARY, READING_ROOM
from web2gpt.demo.markup import Link, article_body, page, text_body
from web2gpt.demo.pages import Article, Section
from web2gpt.demo.prose import Block
from web2gpt.demo.site import Site

MIRROR, STORIES = "mirror.copyshelf.example", "stories.lanternpost.test"
MIRRORS = 10  # of each kind
FORBIDDEN = 6
NOT_FOUND = 5
LANGUAGES = {"french": "fr", "german": "de", "italian": "it", "spanish": "es"}
ROBOTS = "User-agent: *\nDisallow: /private/\n\nUser-agent: greedybot\nDisallow: /\n"
NOTE = "This copy was made by the mirror's editors and may lag a little behind its original."


def add_plants(site: Site, articles: Sequence[Article]) -> None:
    """Add all that is not the honest library."""
    _mirrors(site, articles)
    _stories(site)
    _robots(site)
    _missing(site)
    _oversized(site)


def mojibake(text: str) -> str:
    """UTF-8 read as Windows-1252, as by a careless program."""
    return text.encode().decode("cp1252")


def lightly_edited(article: Article) -> Article:
    """The article with a note at its end and one long word in a hundred left out."""
    sections = [*article.sections, Section("About this copy", (Block("p", NOTE),))]
    return replace(article, sections=tuple(map(_edited, sections)))


def _edited(section: Section) -> Section:
    blocks = []
    for block in section.blocks:
        words = block.text.split(" ")
        if block.kind != "pre" and len(words) > 40:
            del words[len(words) // 2 :: 100]
        blocks.append(Block(block.kind, " ".join(words)))
    return replace(section, blocks=tuple(blocks))


def _mirrors(site: Site, articles: Sequence[Article]) -> None:
    long = [article for article in articles if article.characters > 3000]
    chosen = long[:: len(long) // (2 * MIRRORS)][: 2 * MIRRORS]
    links = [Link(f"/copies{article.path}.html", article.title) for article in chosen]
    for number, article in enumerate(chosen):
        copy = lightly_edited(article) if number % 2 else article
        text = page("Copyshelf Mirror", article.title, article_body(copy), links)
        url = site.add(MIRROR, f"/copies{article.path}.html", text)
        site.plant("dedup", "near_duplicate", url)


def _stories(site: Site) -> None:
    """Pages written for the demo: foreign, broken, short, and one that wants a browser."""
    for name, title, paragraphs in _texts():
        kind = name.partition("-")[0]
        if kind == "private":
            continue
        body = text_body(title, paragraphs)
        if kind == "mojibake":
            body = mojibake(body)
        language = LANGUAGES.get(kind, "en")
        text = page("Lantern Post", title, body, _menu(), language=language)
        url = site.add(STORIES, f"/{name}.html", text)
        match kind:
            case "mojibake":
                site.plant("mended", "mojibake", url)
            case "short" | "javascript":
                site.plant("clean", kind, url)
            case _:
                site.plant("clean", "language", url)


def _robots(site: Site) -> None:
    """A folder that robots.txt forbids, with pages that are there all the same."""
    site.add(STORIES, "/robots.txt", ROBOTS, listed=False)
    site.add(LIBRARY, "/robots.txt", "User-agent: *\nDisallow:\n", listed=False)
    (_, title, paragraphs), *_ = (text for text in _texts() if text[0] == "private")
    for number in range(1, FORBIDDEN + 1):
        text = page("Lantern Post", title, text_body(title, paragraphs), _menu())
        url = site.add(STORIES, f"/private/minutes-{number}.html", text)
        site.plant("fetch", "robots", url)


def _missing(site: Site) -> None:
    """Pages that are gone, and one whose host gets its TLS wrong: the demo is served without."""
    for number in range(1, NOT_FOUND + 1):
        url = f"http://{READING_ROOM}/gone/volume-{number}.html"
        site.lines.append(url)
        site.plant("fetch", "http_404", url)
    secure = f"https://{READING_ROOM}/gone/secure.html"
    site.lines.append(secure)
    site.plant("fetch", "tls", secure)


def _oversized(site: Site) -> None:
    """A page that says how large it is, and one that never ends."""
    for path, size in (
        ("/archive/all-issues.html", "100000000"),
        ("/feed/for-ever.html", "endless"),
    ):
        site.plant("fetch", "too_large", site.generate(STORIES, path, size))


def _menu() -> list[Link]:
    return [Link(f"/{name}.html", title) for name, title, _ in _texts() if name != "private"]


def _texts() -> list[tuple[str, str, list[str]]]:
    """Name, title and paragraphs of each text written for the demo."""
    found = []
    for file in sorted(files(__package__).joinpath("texts").iterdir(), key=lambda file: file.name):
        title, *paragraphs = file.read_text(encoding="utf-8").splitlines()
        found.append((file.name.removesuffix(".txt"), title, paragraphs))
    return found
