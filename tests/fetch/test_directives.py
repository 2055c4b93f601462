"""Pages that ask to be left out are, as the search engines' documents have the examples."""

import gzip

import pytest

from web2gpt.fetch.directives import meta_directives

HEADERS = [
    ("noindex", True),
    ("NoIndex, nofollow", True),
    ("nofollow", False),
    ("max-snippet: 20, noindex", True),
    ("unavailable_after: 25 Jun 2030 15:00:00 PST", False),
    ("webtogpt: noindex", True),
    ("WebToGPT: nofollow, noarchive", True),
    ("otherbot: noindex, nofollow", False),
    ("otherbot: noindex, webtogpt: nofollow", False),
    ("otherbot: nofollow, *: none", True),
]


@pytest.mark.parametrize(("value", "refused"), HEADERS)
def test_the_header_is_obeyed(web, answer, value, refused):
    fetched, _ = web({"/page": answer(fields=[f"X-Robots-Tag: {value}"])})
    assert fetched.outcome.outcome == ("robots_tag" if refused else "kept")


def test_of_several_fields_each_counts(web, answer):
    fields = ["X-Robots-Tag: otherbot: nofollow", "X-Robots-Tag: noai"]
    assert web({"/page": answer(fields=fields)})[0].outcome.outcome == "robots_tag"


PAGES = [
    ('<meta name="robots" content="noindex">', {"noindex"}),
    ("<META CONTENT='NOARCHIVE,NoFollow' NAME=ROBOTS />", {"noarchive", "nofollow"}),
    ('<meta name="webtogpt" content="none">', {"none"}),
    ('<meta name="otherbot" content="noindex">', set()),
    ('<!-- <meta name="robots" content="noindex"> --><title>robots</title>', set()),
    ('<!-- unclosed <meta name="robots" content="noindex">', set()),
    ('<body><p><meta name="robots" content="noindex">', set()),
    ('<meta name="robots" content="max-snippet:-1, noai">', {"max-snippet", "noai"}),
    ("<meta" * 10_000 + " robots " + "<!--" * 1_000, set()),
]


@pytest.mark.parametrize(("page", "found"), PAGES)
def test_the_directives_of_a_page(page, found):
    assert meta_directives(page.encode(), "webtogpt") == found


def test_a_page_that_asks_for_it_is_left_out_and_its_text_is_not_archived(web, answer):
    page = answer(b'<meta name="robots" content="noindex"><p>a secret</p>')
    fetched, _ = web({"/page": page}, warc_level=1)
    assert (fetched.outcome.outcome, fetched.outcome.status) == ("robots_meta", 200)
    assert fetched.outcome.bytes == 0
    kept, _ = web({"/page": page}, page_rules=("noarchive",))
    assert kept.outcome.outcome == "kept"
    assert b"a secret" in gzip.decompress(kept.records)
    archived = gzip.decompress(fetched.records)
    assert b"a secret" not in archived
    assert b"X-Outcome: robots_meta\r\n" in archived
