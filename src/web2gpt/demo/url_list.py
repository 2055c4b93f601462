"""The demo's list of URLs: the site's pages, and what lists gathered on the web also hold."""

from hashlib import blake2b

from web2gpt.demo.library import READING_ROOM
from web2gpt.demo.site import Site

DOMAIN = (
    "https://www.youtube.com/watch?v=abcdefghijk",
    "http://youtu.be/abcdefghijk",
    "https://i.imgur.com/qwertyu",
    "https://twitter.com/somebody/status/1234567890",
    "https://m.facebook.com/groups/knitting",
    "https://old.reddit.com/r/books/comments/abc123/",
    "https://www.instagram.com/p/Babcdefghij/",
    "https://www.amazon.com/dp/0123456789",
    "https://www.amazon.co.uk/gp/product/0123456789",
    "https://bit.ly/3abcdef",
    "https://play.google.com/store/apps/details?id=org.example.app",
    "https://soundcloud.com/somebody/some-song",
)
EXTENSION = ("report.pdf", "photo.JPG", "song.mp3", "film.mp4", "archive.7z", "drawing.ai",
             "table.xlsx", "script.js?version=2", "style.css", "setup.exe", "feed.xml")  # fmt: skip
MALFORMED = (
    "www.reading-room.test/without-a-scheme.html",
    "http//reading-room.test/no-colon.html",
    "http://",
    "https://two words.example/page",
    "http://reading-room.test:port/index.html",
    "ftp://reading-room.test/files.html",
    "mailto:librarian@reading-room.test",
    "http://[::1/broken-bracket.html",
    "see the page on http://reading-room.test/",
)
SHORT = ("http://a", "http://x", "http:b.c")
TRACKING = ("utm_source=letter&utm_medium=mail", "fbclid=IwAR0abcdef", "gclid=EAIaIQob")


def add_noise(site: Site) -> None:
    """Add lines that the stage urls should drop, then put the list in no order to rely on."""
    pages = [line for line in site.lines if line.startswith(f"http://{READING_ROOM}/")]
    pages = [url for url in pages if "/gone/" not in url and "/old/" not in url]
    site.plant("urls", "duplicate", *_duplicates(pages))
    site.plant("urls", "domain", *DOMAIN)
    site.plant("urls", "extension", *(f"http://{READING_ROOM}/files/{name}" for name in EXTENSION))
    site.plant("urls", "malformed", *MALFORMED)
    site.plant("urls", "short", *SHORT)
    for lines in site.planted["urls"].values():
        site.lines += lines
    keys = [blake2b(f"{number} {line}".encode()).digest() for number, line in enumerate(site.lines)]
    site.lines = [line for _, line in sorted(zip(keys, site.lines, strict=True))]


def _duplicates(pages: list[str]) -> list[str]:
    """Lines that say again, in another form, what ``pages`` has."""
    variants = pages[:10]
    variants += [f"{url}?{query}" for url, query in zip(pages[10:], TRACKING, strict=False)]
    variants += [url.replace("://", "://www.") for url in pages[13:16]]
    variants += [f"{url}/" for url in pages[16:18]]
    variants += [f"{url}#section-2" for url in pages[18:20]]
    variants += [url.replace("http://reading-room", "HTTP://Reading-Room") for url in pages[20:22]]
    variants += [url.replace(".test/", ".test:80/") for url in pages[22:24]]
    variants.append(f"http://{READING_ROOM}/gone/secure.html")  # listed under https too
    return variants
