"""The built-in lists' form, and users' lists in each form."""

from importlib.resources import files
from pathlib import Path

import pytest

from web2gpt.errors import ConfigError, InputError
from web2gpt.urls.domain_lists import DomainLists, built_in_names, domains_in_line, load_lists
from web2gpt.web.urls import parse, registered_domain


@pytest.mark.parametrize("theme", built_in_names())
def test_a_built_in_list_says_why_and_names_one_real_domain_a_line(theme: str) -> None:
    text = files("web2gpt.urls").joinpath("lists", f"{theme}.txt").read_text()
    first, *names = text.splitlines()
    assert first.startswith("# ")
    assert names == sorted(set(names))
    for name in names:
        url = parse(f"http://{name}/")
        assert url is not None
        assert url.host == name
        # two names run together by a forgotten comma, such as a.comb.com
        domain = registered_domain(name)
        assert name == domain or not domain.startswith(("com", "net", "org")), name


def test_built_in_lists_cover_the_themes_of_the_systems_replaced() -> None:
    lists = load_lists((), (), ())
    for host, theme in {
        "i.imgur.com": "images", "www.youtube.com": "video", "soundcloud.com": "audio",
        "facebook.com": "social", "np.reddit.com": "reddit", "9gag.com": "memes",
        "pornhub.com": "adult", "deviantart.com": "art", "play.google.com": "apps",
        "www.dropbox.com": "files", "amazon.co.uk": "shops", "apple.com": "companies",
        "github.com": "code", "en.wikipedia.org": "wikis", "bit.ly": "shorteners",
        "d1.cloudfront.net": "delivery", "coinmarketcap.com": "crypto", "change.org": "petitions",
        "spotrac.com": "guarded",
    }.items():  # fmt: skip
        assert lists.listed_in(host) == theme, host
    assert lists.listed_in("apple.example.org") is None
    assert lists.listed_in("vid.example") is None


def test_a_theme_can_be_switched_off_by_its_exact_name() -> None:
    assert load_lists(["wikis"], (), ()).listed_in("en.wikipedia.org") is None
    with pytest.raises(ConfigError, match="wiki"):
        load_lists(["wiki"], (), ())


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("example.com", [("example.com", False)]),
        ("  Example.COM  # a remark", [("example.com", False)]),
        ("*.example.com", [("example.com", False)]),
        ("bücher.example", [("xn--bcher-kva.example", False)]),
        ("0.0.0.0 a.com b.com", [("a.com", False), ("b.com", False)]),
        ("127.0.0.1\ta.com", [("a.com", False)]),
        ("127.0.0.1 localhost", []),
        (":: a.com", [("a.com", False)]),
        ("||a.com^", [("a.com", False)]),
        ("||a.com^$document", [("a.com", False)]),
        ("||a.com^$third-party", []),
        ("||a.com/path^", []),
        ("@@||a.com^", [("a.com", True)]),
        ("! a comment.com", []),
        ("# a.com", []),
        ("a.com##.banner", []),
        ("a.com#@#.banner", []),
        ("a.com#?#.banner:has(a)", []),
        ("0.0.0.0 a.com ## why", [("a.com", False)]),
        ("a.com?x=1", []),
        ("||a.com?x=1^", []),
        ("someone@a.com", []),
        ("||*^", []),
        ("\0", []),
        ("fe80::1%lo0 localhost", []),
        ("[Adblock Plus 2.0]", []),
        ("192.168.0.1 a.com", []),
        ("com", []),
    ],
)
def test_forms_of_lines(line: str, names: list[tuple[str, bool]]) -> None:
    assert list(domains_in_line(line)) == names


def test_the_most_special_entry_decides_and_allowing_wins_a_tie(tmp_path: Path) -> None:
    block, allow = tmp_path / "block.txt", tmp_path / "allow.txt"
    block.write_text("bad.com\nworse.ok.bad.com\nboth.com\n")
    allow.write_text("ok.bad.com\nboth.com\nwww.youtube.com\n")
    lists = load_lists((), [block], [allow])
    assert lists.listed_in("bad.com") == "block.txt"
    assert lists.listed_in("a.ok.bad.com") is None
    assert lists.listed_in("a.worse.ok.bad.com") == "block.txt"
    assert lists.listed_in("both.com") is None
    assert lists.listed_in("www.youtube.com") is None
    assert lists.listed_in("m.youtube.com") == "video"


def test_lines_that_name_nothing_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    block = tmp_path / "block.txt"
    block.write_text("# fine\na.com\nwhat is this\n||b.com^$script\n")
    assert load_lists((), [block], ()).listed_in("a.com") == "block.txt"
    assert "1 lines name no domain, the first is line 3" in capsys.readouterr().err


def test_a_missing_list_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.txt"):
        load_lists((), [tmp_path / "absent.txt"], ())


def test_an_empty_collection_lists_nothing() -> None:
    assert DomainLists().listed_in("example.com") is None
