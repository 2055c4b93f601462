"""Each rule on its own, and their order."""

from importlib.resources import files

import pytest

from web2gpt.urls.domain_lists import DomainLists
from web2gpt.urls.rules import Rejection, Rules, extension_of, load_extensions

LISTS = DomainLists(blocked={"bad.com": "mine", "images.good.com": "mine"}, allowed={"ok.bad.com"})


@pytest.fixture
def rules() -> Rules:
    return Rules(9, LISTS)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("nothing", "malformed"),
        ("ftp://bad.com/x.pdf", "malformed"),
        ("http://a", "short"),
        ("http://abc/x.pdf", "malformed"),
        ("http://a..b.com/", "malformed"),
        (f"http://{'a' * 64}.com/", "malformed"),
        (f"http://{'a.' * 127}com/", "malformed"),
        ("http://good.com/\0", "malformed"),
        pytest.param(f"http://good.com/{'a' * 1_000_000}", "malformed", id="a megabyte"),
        ("http://bad.com/x.pdf", "domain"),
        ("http://www.deep.bad.com/", "domain"),
        ("http://images.good.com/", "domain"),
        ("http://images.good.com./", "domain"),
        ("http://good.com/x.PDF?y=z.html", "extension"),
        ("http://good.com/x.tar.gz", "extension"),
        ("http://good.com/x.7z", "extension"),
        ("http://good.com/x.ai#y", "extension"),
    ],
)
def test_the_first_rule_that_hits_decides(rules: Rules, given: str, reason: str) -> None:
    verdict = rules.judge(given)
    assert isinstance(verdict, Rejection)
    assert verdict.reason == reason


@pytest.mark.parametrize(
    "given",
    ["http://good.com/", "http://good.com.pdf/", "http://good.com/?file=x.pdf", "http://ok.bad.com/",
     "http://notbad.com/", "http://bad.com.org/", "http://good.com/x.pdf/", "http://10.0.0.1/page",
     "http://good.com/7z", "http://[2001:db8::1]:8080/", "http://me:secret@good.com:81/",
     "http://good.com/page.html", "http://good.com/a.b/c"],
)  # fmt: skip
def test_what_only_looks_like_a_hit_is_kept(rules: Rules, given: str) -> None:
    assert not isinstance(rules.judge(given), Rejection)


def test_extension_of_a_path() -> None:
    assert extension_of("/a.b/c.TAR.Gz") == "gz"
    assert extension_of("/a.b/c") == ""
    assert extension_of("/") == ""


def test_extensions_stand_once_each_as_plain_words() -> None:
    lines = files("web2gpt.urls").joinpath("extensions.txt").read_text().splitlines()
    words = [word for line in lines if not line.startswith("#") for word in line.split()]
    assert len(words) == len(set(words)) == len(load_extensions())
    assert all(word.isalnum() and word == word.lower() and len(word) <= 8 for word in words)
