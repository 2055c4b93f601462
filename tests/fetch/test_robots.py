"""robots.txt as RFC 9309 has it."""

import pytest

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
