"""Proxies of the environment are used, see no page of theirs fetched, and weaken no guard."""

import asyncio
import base64
import gzip

import pytest

from web2gpt.config.fetch import Fetch
from web2gpt.errors import ConfigError
from web2gpt.fetch.client import Client
from web2gpt.fetch.page import PageFetcher
from web2gpt.fetch.proxies import is_special_name
from web2gpt.fetch.urllist import ListedUrl

PAGE = "http://news.example/page"


@pytest.fixture
def through_proxy(server_class, monkeypatch):
    """Fetch ``url`` through a proxy that knows ``pages`` by whole URL."""

    def run(url, pages, variables=(), **settings):
        async def fetch():
            async with server_class(pages) as proxy:
                address = f"http://user:secret@127.0.0.1:{proxy.port}"
                for name, value in {"http_proxy": address, "https_proxy": address,
                                    **dict(variables)}.items():  # fmt: skip
                    monkeypatch.setenv(name, value)
                chosen = Fetch(contact="me@example.org", retries=0, delay=0.0, **settings)
                async with Client(chosen) as client:
                    listed = ListedUrl(url.replace("PORT", str(proxy.port)), "list")
                    return await PageFetcher(client, chosen).fetch(listed), proxy

        return asyncio.run(fetch())

    return run


def test_a_page_comes_through_the_proxy_and_no_secret_is_archived(through_proxy, answer):
    fetched, proxy = through_proxy(PAGE, {PAGE: answer()})
    assert fetched.outcome.outcome == "kept"
    assert proxy.requests == {PAGE: 1, "http://news.example/robots.txt": 1}
    secret = base64.b64encode(b"user:secret")
    assert b"Proxy-Authorization: Basic " + secret in proxy.heads[-1]
    archived = gzip.decompress(fetched.records)
    assert b"GET /page HTTP/1.1" in archived
    assert secret not in archived and b"WARC-IP-Address" not in archived


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1/", "http://169.254.169.254/", "http://[::1]/", "http://localhost/",
     "http://printer/", "http://db.internal/", "http://127.0.0.1:PORT/"],
)  # fmt: skip
def test_the_guard_checks_what_the_url_says(through_proxy, target):
    fetched, proxy = through_proxy(target, {})
    assert fetched.outcome.outcome == "refused_address"
    assert not proxy.requests


def test_a_redirect_to_a_private_address_is_not_passed_on(through_proxy, answer):
    pages = {PAGE: answer(b"", "302 Found", ["Location: http://10.0.0.1/"])}
    fetched, proxy = through_proxy(PAGE, pages)
    assert fetched.outcome.outcome == "refused_address"
    assert not any("10.0.0.1" in path for path in proxy.requests)


def test_a_proxy_that_does_not_connect_is_named(through_proxy):
    fetched, proxy = through_proxy("https://news.example/page", {})
    assert fetched.outcome.outcome == "proxy"
    assert proxy.requests["news.example:443"]


def test_exceptions_go_directly_and_are_checked_like_everything(through_proxy, answer):
    url = "http://localhost:PORT/page"
    fetched, proxy = through_proxy(url, {"/page": answer()}, {"no_proxy": "localhost"})
    assert fetched.outcome.outcome == "refused_address"
    assert not proxy.requests


def test_no_proxy_is_used_where_the_configuration_says_so(through_proxy, answer):
    fetched, proxy = through_proxy("http://127.0.0.1:PORT/page", {"/page": answer()},
                                   proxies=False, allow_networks=("127.0.0.0/8",))  # fmt: skip
    assert fetched.outcome.outcome == "kept"
    assert proxy.requests["/page"] == 1


def test_a_proxy_of_another_kind_is_an_error(monkeypatch):
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:1080")
    with pytest.raises(ConfigError, match=r"https_proxy: socks5"):
        Client(Fetch(contact="me@example.org"))


def test_names_of_no_public_host():
    names = ["localhost", "a.localhost.", "printer", "x.local", "y.INTERNAL", "z.home.arpa"]
    assert all(map(is_special_name, names))
    assert not any(map(is_special_name, ["example.com", "local.example.com", "internal.dev"]))
