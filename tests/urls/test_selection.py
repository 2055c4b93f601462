"""The whole stage, against a straightforward selection in memory and against the demo's plants."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from web2gpt.config.urls import Urls
from web2gpt.io.shards import read_jsonl
from web2gpt.urls.domain_lists import load_lists
from web2gpt.urls.inputs import parse_sources
from web2gpt.urls.rules import Rejection, Rules
from web2gpt.urls.selection import Outputs, select_urls, shard_of
from web2gpt.web.urls import duplicate_key, parse, preference, registered_domain


def random_lines(seed: int, count: int) -> list[str]:
    """URLs of few hosts and paths, in many forms, some of them bad."""
    pick = random.Random(seed).choice
    return [
        pick(["http://", "https://", "HTTP://", "ftp://", ""])
        + pick(["", "www.", "sub."])
        + pick(["a.com", "b.co.uk", "c.org", "youtube.com", "d.example", "localhost"])
        + pick(["", "/", "/x", "/x/", "/y.html", "/z.pdf", "/x y", "/%7Ez", "/ü"])
        + pick(["", "", "?q=1", "?utm_source=q", "?q=1&amp;r=2", "?q=1&r=2", "#top"])
        for _ in range(count)
    ]


def run(
    tmp_path: Path, lists: dict[str, list[str]], shards: int = 3, workers: int = 1, **settings: Any
) -> Outputs:
    sources = []
    for name, lines in lists.items():
        path = tmp_path / f"{name}.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        sources.append(f"{name}={path}")
    out = tmp_path / "out"
    outputs = Outputs(out, out / "rejected.jsonl.zst", out / "stats.json", out / "work")
    select_urls(parse_sources(sources), outputs, shards, Urls(**settings), workers)
    return outputs


def test_the_same_as_a_selection_in_memory(tmp_path: Path) -> None:
    lines = random_lines(1, 5000)
    outputs = run(tmp_path, {"s": lines})
    rules = Rules(9, load_lists((), (), ()))
    best: dict[str, tuple[int, str]] = {}
    for line in lines:
        if not isinstance(verdict := rules.judge(line), Rejection):
            url, _ = verdict
            key, rank = duplicate_key(url), (preference(url), url.url)
            best[key] = min(best.get(key, rank), rank)
    expected = sorted(url for _, url in best.values())
    assert (outputs.folder / "clean.txt").read_text().splitlines() == expected
    stats = json.loads(outputs.stats.read_text())
    assert stats["in"] == len(lines)
    assert stats["kept"] == stats["out"] == len(expected)
    assert stats["in"] == stats["kept"] + sum(stats["dropped"].values())
    assert set(stats["dropped"]) == {"malformed", "domain", "extension", "duplicate"}
    rejected = list(read_jsonl(outputs.rejected))
    assert len(rejected) == sum(stats["dropped"].values())


def test_shards_hold_all_urls_sorted_and_each_domain_in_one(tmp_path: Path) -> None:
    outputs = run(tmp_path, {"s": random_lines(2, 3000)}, shards=3)
    homes: dict[str, set[int]] = {}
    everything = []
    for number in range(3):
        text = (outputs.folder / f"urls-{number:04d}.tsv").read_text()
        urls = [line.split("\t")[0] for line in text.splitlines()]
        assert urls == sorted(urls)
        everything += urls
        for url in filter(None, map(parse, urls)):
            homes.setdefault(registered_domain(url.host), set()).add(number)
    assert all(len(shards) == 1 for shards in homes.values())
    assert sorted(everything) == (outputs.folder / "clean.txt").read_text().splitlines()


def test_order_of_lines_and_hash_seed_change_nothing(tmp_path: Path) -> None:
    lines = random_lines(3, 2000)
    results = []
    for number, order in enumerate((lines, lines[::-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "list.txt").write_text("".join(f"{line}\n" for line in order))
        out = folder / "out"
        command = [
            sys.executable, "-m", "web2gpt.cli", "urls", "--source", f"s={folder}/list.txt",
            "--shards", "2", "--output", out, "--rejected", out / "rejected.jsonl.zst",
            "--stats", out / "stats.json", "--work", out / "work",
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONHASHSEED": str(number)}
        subprocess.run(command, check=True, env=environment, timeout=60)
        names = ("clean.txt", "urls-0000.tsv", "urls-0001.tsv")
        stats = json.loads((out / "stats.json").read_text()) | {"time": None}
        results.append(([(out / name).read_bytes() for name in names], stats))
    assert results[0] == results[1]


def test_the_number_of_processes_changes_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("web2gpt.urls.inputs.CHUNK", 4_000)
    results = []
    for workers in (1, 3):
        folder = tmp_path / str(workers)
        folder.mkdir()
        lists = {"s": [*random_lines(4, 3000), "\udc80"], "t": random_lines(5, 500)}
        encoded = {name: [line.encode("utf-8", "surrogateescape").decode("latin-1")
                          for line in lines] for name, lines in lists.items()}  # fmt: skip
        outputs = run(folder, encoded, shards=2, workers=workers)
        files = [*sorted(outputs.folder.glob("*.t*")), outputs.rejected]
        stats = json.loads(outputs.stats.read_text()) | {"time": None}
        text = [file.read_bytes() for file in files[:-1]]
        rejected = [record | {"file": None} for record in read_jsonl(files[-1])]
        results.append((text, rejected, stats))
    assert len(results[0][0]) == 3
    assert results[0] == results[1]


def test_of_two_sources_the_first_keeps_a_url(tmp_path: Path) -> None:
    outputs = run(tmp_path, {"z": ["http://a.com/x"], "a": ["http://a.com/x"]}, shards=1)
    assert (outputs.folder / "urls-0000.tsv").read_text() == "http://a.com/x\tz\n"
    (duplicate,) = read_jsonl(outputs.rejected)
    assert isinstance(duplicate, dict)
    assert (duplicate["source"], duplicate["line"]) == ("a", 1)
    assert duplicate["figure"] == "http://a.com/x"


def test_the_largest_domains_are_in_the_statistics(tmp_path: Path) -> None:
    lines = [f"http://a.com/{n}" for n in range(5)] + [f"http://w{n}.org/x" for n in range(40)]
    figures = json.loads(run(tmp_path, {"s": lines}).stats.read_text())["figures"]
    assert figures["domains"] == 41
    assert figures["domain a.com"] == 5
    assert sum(name.startswith("domain ") for name in figures) == 20


def test_settings_and_own_lists_are_obeyed(tmp_path: Path) -> None:
    (tmp_path / "block.hosts").write_text("0.0.0.0 c.org\n")
    (tmp_path / "allow.list").write_text("youtube.com\n")
    outputs = run(
        tmp_path,
        {
            "s": [
                "http://youtube.com/a",
                "http://c.org/a",
                "http://en.wikipedia.org/a",
                "http://q.de",
            ]
        },
        min_length=12,
        blacklist_domains=(str(tmp_path / "block.hosts"),),
        allow_domains=(str(tmp_path / "allow.list"),),
        without_lists=("wikis",),
    )
    assert (outputs.folder / "clean.txt").read_text().splitlines() == [
        "http://en.wikipedia.org/a",
        "http://youtube.com/a",
    ]


def test_a_second_run_of_the_same_job_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = run(tmp_path, {"s": ["http://a.com/x"]})
    before = (outputs.folder / "clean.txt").stat().st_mtime_ns
    assert "1 kept" in capsys.readouterr().out
    select_urls(parse_sources([f"s={tmp_path}/s.txt"]), outputs, 3, Urls())
    assert (outputs.folder / "clean.txt").stat().st_mtime_ns == before
    assert capsys.readouterr().out == ""


def test_shards_are_numbered_from_zero_and_steady() -> None:
    assert {shard_of(f"site{n}.com", 4) for n in range(100)} == {0, 1, 2, 3}
    assert shard_of("example.com", 1) == 0
