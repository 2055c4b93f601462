"""The demo against what the workflow's tests, and a reader, expect of it."""

import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import ftfy
import langdetect
import lxml.html
import pytest
from protego import Protego

from web2gpt.config.fetch import Fetch
from web2gpt.config.urls import Urls
from web2gpt.demo.server import serve_folder
from web2gpt.fetch.publish import FetchFiles
from web2gpt.fetch.stage import fetch_shard
from web2gpt.io.shards import read_jsonl
from web2gpt.io.statistics import Statistics
from web2gpt.urls.inputs import parse_sources
from web2gpt.urls.selection import Outputs, select_urls
from web2gpt.web.urls import registered_domain


def pages(demo: Path) -> list[Path]:
    return sorted((demo / "site").rglob("*.html"))


def file_of(demo: Path, url: str) -> Path:
    parts = urlsplit(url)
    return demo / "site" / str(parts.hostname) / parts.path.lstrip("/")


def prose_of(file: Path) -> str:
    tree = lxml.html.fromstring(file.read_bytes())
    return " ".join(" ".join(node.text_content() for node in tree.iter("p", "li", "h1")).split())


def article_of(file: Path) -> str:
    return " ".join(
        lxml.html.fromstring(file.read_bytes()).find(".//article").text_content().split()
    )


def shingles(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[start : start + 5]) for start in range(len(words) - 4)}


def test_is_large_enough_and_spread_over_domains(demo: Path) -> None:
    assert len(pages(demo)) >= 250
    assert sum(len(article_of(file)) for file in pages(demo)) >= 1_500_000
    hosts = [folder.name for folder in (demo / "site").iterdir()]
    assert len({registered_domain(host) for host in hosts}) == len(hosts) >= 4


def test_names_no_path_or_address_of_the_machine(demo: Path) -> None:
    forbidden = [str(Path.home()), sys.prefix, sys.base_prefix, str(demo), "site-packages"]
    pattern = re.compile(
        "|".join(re.escape(path) for path in forbidden if len(path) > 4)
        + r"|(?<![\w.:/])/(?:root|home|tmp|usr|work|var)/|\bat 0x[0-9a-f]+|0x[0-9a-f]{6}"
    )
    for file in [*pages(demo), demo / "urls.txt", demo / "planted.json"]:
        assert not pattern.search(file.read_text()), file


def test_is_the_same_under_another_hash_seed(demo: Path, second_demo: Path) -> None:
    again = second_demo
    files = sorted(file.relative_to(demo) for file in demo.rglob("*") if file.is_file())
    assert files == sorted(file.relative_to(again) for file in again.rglob("*") if file.is_file())
    for file in files:
        assert (demo / file).read_bytes() == (again / file).read_bytes(), file


def test_every_listed_page_stands_unless_planted_as_missing(demo: Path, planted: Any) -> None:
    lists = planted["lists"]
    noise = [url for urls in lists["urls"].values() for url in urls]
    listed = (demo / "urls.txt").read_text().splitlines()
    assert len(listed) == planted["urls"]["in"]
    for url in noise:
        listed.remove(url)
    assert len(listed) == len(set(listed)) == planted["urls"]["kept"]
    absent = {url for url in listed if not file_of(demo, url).is_file()}
    assert absent == {
        *lists["fetch"]["http_404"],
        *lists["fetch"]["tls"],
        *lists["fetch"]["too_large"],
        *lists["redirects"]["redirect"],
    }


def test_redirects_lead_to_pages(demo: Path, planted: Any) -> None:
    targets = {}
    for file in (demo / "site").rglob("_redirects"):
        for line in file.read_text().splitlines():
            path, target, status = line.split()
            base = f"http://{file.parent.name}"
            whole = target if target.startswith("http") else base + target
            targets[base + path] = whole
            assert status in ("301", "302")
    assert sorted(targets) == sorted(planted["lists"]["redirects"]["redirect"])
    assert all(file_of(demo, target).is_file() for target in targets.values())
    assert (
        len({urlsplit(url).hostname != urlsplit(to).hostname for url, to in targets.items()}) == 2
    )


def test_robots_txt_forbids_just_what_was_planted(demo: Path, planted: Any) -> None:
    robots = {
        file.parent.name: Protego.parse(file.read_text())
        for file in (demo / "site").rglob("robots.txt")
    }
    forbidden = [
        url
        for url in (demo / "urls.txt").read_text().splitlines()
        if (host := url.split("/")[2] if url.count("/") > 2 else "") in robots
        and not robots[host].can_fetch(url, "web2gpt")
    ]
    assert sorted(forbidden) == sorted(planted["lists"]["fetch"]["robots"])


def test_mirrors_are_near_duplicates_of_one_page_each(demo: Path, planted: Any) -> None:
    mirrors = planted["lists"]["dedup"]["near_duplicate"]
    assert len(mirrors) == planted["dedup"]["at_least"] == 20
    scores = []
    for url in mirrors:
        path = urlsplit(url).path.removeprefix("/copies")
        (original,) = (demo / "site").glob(f"*{path}")
        copy, own = shingles(article_of(file_of(demo, url))), shingles(article_of(original))
        scores.append(len(copy & own) / len(copy | own))
    assert all(score == 1 for score in scores[::2])
    assert all(0.85 < score < 1 for score in scores[1::2])


def test_foreign_pages_are_dropped_for_their_language_alone(demo: Path, planted: Any) -> None:
    langdetect.DetectorFactory.seed = 0
    found = []
    for url in planted["lists"]["clean"]["language"]:
        text = article_of(file_of(demo, url))
        found.append(langdetect.detect(text))
        assert len(text) > 1000
    assert set(found) == {"de", "es", "fr", "it"}


def test_short_pages_and_the_one_for_browsers_are_short(demo: Path, planted: Any) -> None:
    lists = planted["lists"]["clean"]
    assert all(100 < len(article_of(file_of(demo, url))) < 400 for url in lists["short"])
    (url,) = lists["javascript"]
    text = article_of(file_of(demo, url))
    assert len(text) < 256
    assert "javascript" in text.lower()


def test_honest_pages_are_long_and_english(demo: Path, planted: Any) -> None:
    langdetect.DetectorFactory.seed = 0
    odd = {url for urls in planted["lists"]["clean"].values() for url in urls}
    odd |= set(planted["lists"]["mended"]["mojibake"])
    files = [file for file in pages(demo) if file.name != "index.html"]
    for file in files[::7]:
        if f"http://{file.relative_to(demo / 'site')}" not in odd:
            text = prose_of(file)
            assert len(text.split()) > 100, file
            assert langdetect.detect(text) == "en", file


def test_mojibake_can_be_mended(demo: Path, planted: Any) -> None:
    (url,) = planted["lists"]["mended"]["mojibake"]
    broken = article_of(file_of(demo, url))
    assert "cafÃ©" in broken
    mended = ftfy.fix_text(broken)
    assert "café" in mended
    assert "crème brûlée" in mended
    assert "Ã" not in mended
    assert "â€" not in mended


@pytest.mark.parametrize("name", ["this", "antigravity", "idlelib", "turtle", "distutils"])
def test_modules_that_act_or_open_windows_are_left_out(demo: Path, name: str) -> None:
    assert not [file for file in pages(demo) if file.stem == name or name in file.parts]


def test_the_stage_urls_drops_just_what_was_planted(
    demo: Path, planted: Any, tmp_path: Path
) -> None:
    outputs = Outputs(tmp_path, tmp_path / "r.jsonl.zst", tmp_path / "s.json", tmp_path / "work")
    select_urls(parse_sources([f"demo={demo / 'urls.txt'}"]), outputs, 2, Urls())
    stats = Statistics.load(outputs.stats)
    assert (stats.read, stats.kept) == (planted["urls"]["in"], planted["urls"]["kept"])
    assert dict(stats.dropped) == planted["urls"]["dropped"]
    found: dict[str, list[str]] = {}
    for record in read_jsonl(outputs.rejected):
        assert isinstance(record, dict)
        found.setdefault(record["reason"], []).append(record["url"])
    for reason in ("domain", "extension", "malformed", "short"):
        assert sorted(found[reason]) == sorted(planted["lists"]["urls"][reason])
    kept = set((tmp_path / "clean.txt").read_text().splitlines())
    assert "https://reading-room.test/gone/secure.html" in kept
    assert {url for url in kept if "www.reading" in url or "utm_" in url or url[-1] == "/"} == set()
    assert all((tmp_path / f"urls-000{shard}.tsv").stat().st_size for shard in range(2))


def test_the_stage_fetch_drops_just_what_was_planted(
    demo: Path, planted: Any, tmp_path: Path
) -> None:
    listed = set((demo / "urls.txt").read_text().splitlines())
    noise = {url for urls in planted["lists"]["urls"].values() for url in urls}
    special = {url for urls in planted["lists"]["fetch"].values() for url in urls}
    chosen = sorted([*sorted(listed - noise - special)[::10], *special])
    out = tmp_path / "out"
    files = FetchFiles(tmp_path / "urls-0000.tsv", out / "x.warc.gz", out / "x.outcomes.jsonl.zst",
                       out / "r.jsonl.zst", out / "s.json", out / "work")  # fmt: skip
    files.urls.write_text("".join(f"{url}\tdemo\n" for url in chosen))
    fetch_shard(files, Fetch(serve=str(demo / "site"), delay=0.0), serve_folder)
    stats = Statistics.load(files.stats)
    assert dict(stats.dropped) == planted["fetch"]["dropped"]
    assert stats.kept == len(chosen) - len(special)
