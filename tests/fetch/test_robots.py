"""robots.txt as RFC 9309 has it."""

import random

import pytest
from protego import Protego

from web2gpt.fetch.robots import only_for

FORBID = b"User-agent: *\nDisallow: /page\n"
CASES = {
    "none": (None, "kept"),
    "forbidden": (FORBID, "robots"),
    "another's rules": (b"User-agent: other\nDisallow: /\n", "kept"),
    "our own rules win": (b"User-agent: *\nAllow: /\nUser-agent: WebToGPT\nDisallow: /", "robots"),
    "the longest rule wins": (b"User-agent: *\nDisallow: /p\nAllow: /page\n", "kept"),
    "byte order mark": (b"\xef\xbb\xbf" + FORBID, "robots"),
    "no text": (bytes(range(256)) * 40, "kept"),
    "empty": (b"", "kept"),
    "only 500 KiB are read": (b"#" * 512_000 + b"\n" + FORBID, "kept"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "outcome"), CASES.values(), ids=CASES.keys())
def test_rules_are_obeyed(web, answer, text, outcome):
    robots = {} if text is None else {"/robots.txt": answer(text, kind="text/plain")}
    fetched, server = web({**robots, "/page": answer()})
    assert fetched.outcome.outcome == outcome
    assert server.requests["/page"] == (outcome == "kept")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [("403 No", "kept"), ("404 None", "kept"), ("429 Slow", "robots_unreachable"),
     ("500 Broken", "robots_unreachable"), ("503 Busy", "robots_unreachable")],
)  # fmt: skip
def test_no_rules_allow_all_but_no_answer_allows_nothing(web, answer, status, outcome):
    fetched, server = web({"/robots.txt": answer(b"", status), "/page": answer()})
    assert fetched.outcome.outcome == outcome
    assert server.requests["/page"] == (outcome == "kept")


def test_robots_is_fetched_once_and_through_redirects(web, answer):
    pages = {
        "/robots.txt": answer(b"", "301 Moved", ["Location: /rules"]),
        "/rules": answer(FORBID, kind="text/plain"),
        "/start": answer(b"", "302 Found", ["Location: /page"]),
    }
    fetched, server = web(pages, "/start")
    assert fetched.outcome.outcome == "robots"
    assert server.requests == {"/robots.txt": 1, "/rules": 1, "/start": 1}


def test_the_target_of_a_redirect_has_rules_of_its_own(web, answer):
    pages = {
        "/robots.txt": answer(b"User-agent: *\nDisallow: /secret\n", kind="text/plain"),
        "/page": answer(b"", "302 Found", ["Location: http://other.test/secret"]),
        "/secret": answer(),
    }
    fetched, server = web(pages)
    assert fetched.outcome.outcome == "robots"
    assert server.requests["/secret"] == 0
    assert server.requests["/robots.txt"] == 2


def test_a_file_of_thousands_of_agents_and_rules_does_not_stall_the_crawl():
    """Parsed as it stands, this one takes minutes (agents times rules)."""
    agents = "".join(f"User-agent: bot{n}\n" for n in range(20_000))
    rules = "".join(f"Disallow: /{n}\n" for n in range(10_000))
    parsed = Protego.parse(only_for("webtogpt", f"{agents}User-Agent : WebToGPT\n{rules}"))
    assert not parsed.can_fetch("http://a.test/9999", "webtogpt")
    assert parsed.can_fetch("http://a.test/x", "webtogpt")


def test_leaving_others_out_changes_nothing_for_us():
    lines = ["User-agent: *", "user-agent: webtogpt", "Useragent: other # us", "User agent: web*",
             "USER-AGENT webtogpt/2.0", "User-agent:", "Disallow: /a", "Allow: /a/b", "Disallow: /",
             "Crawl-delay: 3", "Sitemap: http://a.test/", "", "# User-agent: *",
             "junk"]  # fmt: skip
    draw = random.Random(7)
    for _ in range(3000):
        text = "\n".join(draw.choices(lines, k=draw.randint(1, 12)))
        whole, ours = Protego.parse(text), Protego.parse(only_for("webtogpt", text))
        for path in ("/", "/a", "/a/b/c"):
            url = f"http://a.test{path}"
            assert whole.can_fetch(url, "webtogpt") == ours.can_fetch(url, "webtogpt"), text
        assert whole.crawl_delay("webtogpt") == ours.crawl_delay("webtogpt"), text
