"""Reading lists and dumps in every compression."""

import bz2
import codecs
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from web2gpt.errors import ConfigError, InputError
from web2gpt.io.shards import BadLine
from web2gpt.urls.inputs import Line, ListFile, lines_of, parse_sources, read_chunks
from web2gpt.urls.rules import Rejection


def read_list(path: Path) -> list[Line]:
    file = ListFile("s", path)
    return [line for chunk in read_chunks(path) for line in lines_of(chunk, file, 3)]


TEXT = b"http://a.com/\r\n\n  http://b.com/ \nhttp://c.com/\xff\nhttp://d.com/"


@pytest.mark.parametrize(
    ("ending", "compress"),
    [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress),
     (".zst", zstandard.compress)],
)  # fmt: skip
def test_each_compression_gives_the_same_lines(
    tmp_path: Path, ending: str, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"list.txt{ending}"
    path.write_bytes(compress(TEXT))
    assert read_list(path) == [
        (1, "http://a.com/", None),
        (3, "http://b.com/", None),
        (4, "http://c.com/\\xff", Rejection("malformed")),
        (5, "http://d.com/", None),
    ]


def test_a_broken_off_file_costs_its_rest_and_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "list.txt.gz"
    path.write_bytes(gzip.compress(TEXT)[:-12])
    *_, (_, _, fault) = read_list(path)
    assert isinstance(fault, BadLine)
    assert fault.reason == "broken_compression"


def test_chunks_are_whole_lines_and_numbered_on(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("web2gpt.urls.inputs.CHUNK", 20)
    monkeypatch.setattr("web2gpt.io.shards.MAX_LINE", 30)
    lines = [b"http://a.com/", b"", b"http://b.com/\xff", b"x" * 40, b"http://c.com/"] * 3
    (tmp_path / "list.txt").write_bytes(codecs.BOM_UTF8 + b"\n".join(lines))
    found = read_list(tmp_path / "list.txt")
    assert len(list(read_chunks(tmp_path / "list.txt"))) > 3
    assert [(number, given) for number, given, _ in found] == [
        (number, "" if len(line) > 30 else line.decode(errors="backslashreplace"))
        for number, line in enumerate(lines, 1)
        if line
    ]
    assert [getattr(fault, "reason", None) for _, _, fault in found] == [
        None, "malformed", "line_too_long", None
    ] * 3  # fmt: skip


def test_only_white_space_that_a_url_cannot_hold_is_stripped(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("\t http://a.com/\u3000\x0b\r\n\x0c\r\n")
    assert read_list(tmp_path / "list.txt") == [(1, "http://a.com/\u3000", None)]


@pytest.mark.parametrize(
    ("ending", "compress"),
    [(".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstandard.compress)],
)
def test_reddit_dumps_by_score_without_self_posts_and_over_18(
    tmp_path: Path, ending: str, compress: Callable[[bytes], bytes]
) -> None:
    records = [
        {"url": "http://a.com/?x=1&amp;y=2", "score": 3, "is_self": False, "over_18": False},
        {"url": "http://b.com/", "score": 2},
        {"url": "http://c.com/", "score": 9, "is_self": True},
        {"url": "http://d.com/", "score": 9, "over_18": True},
        {"url": "http://e.com/"},
        {"score": 9},
        ["http://f.com/"],
    ]
    path = tmp_path / f"RS_2018-10{ending}"
    path.write_bytes(compress("\n".join([*map(json.dumps, records), "{"]).encode()))
    lines = read_list(path)
    assert lines[0][1] == "http://a.com/?x=1&y=2"
    assert [getattr(fault, "reason", None) for _, _, fault in lines] == [
        None, "low_score", "self_post", "over_18", "low_score", "no_url", "no_url", "not_json",
    ]  # fmt: skip


def test_a_folder_stands_for_its_files_by_name(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a.txt", ".hidden", ".git/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = parse_sources([f"s={tmp_path}", f"t={tmp_path}/a.txt", f"s={tmp_path}/b.txt"])
    names = [(file.source, str(file.path.relative_to(tmp_path))) for file in found]
    assert names == [("s", "a/z.txt"), ("s", "a.txt"), ("s", "b.txt"), ("t", "a.txt")]


def test_sources_that_cannot_be_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="NAME=PATH"):
        parse_sources(["list.txt"])
    with pytest.raises(InputError, match=r"absent\.txt"):
        parse_sources([f"s={tmp_path}/absent.txt"])
    with pytest.raises(InputError, match="empty folder"):
        parse_sources([f"s={tmp_path}"])
