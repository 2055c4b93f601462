"""URL forms, against examples from the WHATWG URL standard and the public suffix list's rules."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from web2gpt.web.urls import (
    MAX_LENGTH,
    _parse_any,
    domain_and_parents,
    duplicate_key,
    is_address,
    parse,
    preference,
    registered_domain,
)


@pytest.mark.parametrize(
    ("given_url", "fetched"),
    [
        ("HTTP://EXAMPLE.com", "http://example.com/"),
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("https://example.com:8080/a", "https://example.com:8080/a"),
        ("http://example.com/a/../b/./c", "http://example.com/b/c"),
        ("http://example.com/ä", "http://example.com/%C3%A4"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://example.com/a#part", "http://example.com/a"),
        ("http://example.com/?b=2&a=1&b=1", "http://example.com/?b=2&a=1&b=1"),
        ("http://example.com/?utm_source=x", "http://example.com/?utm_source=x"),
        ("http://example.com/?a=1&amp;b=2", "http://example.com/?a=1&amp;b=2"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://[0:0::1]/", "http://[::1]/"),
    ],
)
def test_the_fetched_form_is_the_standards_serialization(given_url: str, fetched: str) -> None:
    url = parse(given_url)
    assert url is not None
    assert url.url == fetched


@pytest.mark.parametrize(
    "text",
    ["", "example.com", "http://", "ftp://example.com/", "javascript:alert(1)", "http://a b/",
     "http://example.com:x/", "http://[::1/", "http://exa%mple.com/", "http://example.com/a b",
     "http://example.com/\x00", "http://" + "a" * MAX_LENGTH + ".com/"],
)  # fmt: skip
def test_what_is_no_web_url_is_none(text: str) -> None:
    assert parse(text) is None


PIECES = ["http://", "https://", "a", "Z", "0", "9", ".", "..", "/", "/.", "-", "--", "xn--", "com",
          "1.2", "?", "#", "%2e", "%", "&", "'", "(", ";", ":", "@", "[", "\\", "|", "^", "`", "~",
          '"', "<", "é", "_", "+", "0x1"]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12), st.booleans())
def test_the_quick_way_gives_what_the_parser_gives(pieces: list[str], whole: bool) -> None:
    text = ("http://a.com/" if whole else "https://a") + "".join(pieces)
    assert parse(text) == _parse_any(text)


@given(st.text())
def test_no_text_is_too_odd_and_parsing_twice_changes_nothing(text: str) -> None:
    for attempt in (text, f"http://{text}", f"http://example.com/{text}"):
        url = parse(attempt)
        if url is not None:
            again = parse(url.url)
            assert again == url
            assert duplicate_key(again) == duplicate_key(url)


@pytest.mark.parametrize(
    "variant",
    [
        "https://example.com/a?x=1",
        "http://www.example.com/a?x=1",
        "http://example.com/a/?x=1",
        "http://example.com/a?x=1#part",
        "http://example.com/a?x=1&utm_campaign=y&fbclid=z",
        "http://example.com/a?UTM_Source=y&x=1",
        "http://example.com/a?utm_source=y&amp;x=1",
        "HTTP://Example.com:80/b/../a?x=1",
    ],
)
def test_variants_of_a_url_share_a_key(variant: str) -> None:
    url, other = parse("http://example.com/a?x=1"), parse(variant)
    assert url is not None
    assert other is not None
    assert duplicate_key(other) == duplicate_key(url)


def test_different_pages_have_different_keys() -> None:
    different = [
        "http://example.com/a", "http://example.com/A", "http://example.com/a?x=1",
        "http://example.com/a?x=2", "http://example.com/a?x=1&y=2", "http://example.com/a?y=2&x=1",
        "http://example.com:8080/a", "http://sub.example.com/a", "http://wwww.example.com/a",
        "http://example.com/a?utm=1", "http://example.com/a?id=utm_source",
    ]  # fmt: skip
    urls = [url for text in different if (url := parse(text))]
    assert len({duplicate_key(url) for url in urls}) == len(different)


def test_https_then_no_slash_then_plain_ampersands_are_preferred() -> None:
    in_order = [
        "https://example.com/a?x=1&y=2",
        "https://example.com/a?x=1&amp;y=2",
        "https://example.com/a/?x=1&y=2",
        "http://example.com/a?x=1&y=2",
        "http://example.com/a/?x=1&y=2",
    ]
    ranks = [preference(url) for text in in_order if (url := parse(text))]
    assert ranks == sorted(set(ranks))
    assert len(ranks) == len(in_order)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.co.uk", "b.co.uk"),
        ("example.com", "example.com"),
        ("a.b.example.com.", "example.com"),
        ("city.kobe.jp", "city.kobe.jp"),
        ("www.city.kobe.jp", "city.kobe.jp"),
        ("a.b.c.kobe.jp", "b.c.kobe.jp"),
        ("anna.github.io", "github.io"),
        ("co.uk", "co.uk"),
        ("docs.shelf.example", "shelf.example"),
        ("localhost", "localhost"),
        ("10.1.2.3", "10.1.2.3"),
        ("[2001:db8::1]", "[2001:db8::1]"),
    ],
)
def test_registered_domain(host: str, domain: str) -> None:
    assert registered_domain(host) == domain


def test_hosts_that_are_addresses() -> None:
    assert is_address("1.2.3.4")
    assert is_address("[::1]")
    assert not is_address("4.example")
    assert not is_address("example.com")


def test_a_host_and_the_names_above_it() -> None:
    assert domain_and_parents("a.b.com.") == ["a.b.com", "b.com", "com"]
