"""JSON lines: the same records give the same bytes, and a bad line costs that line only."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import web2gpt.io.shards as module
from web2gpt.errors import InputError
from web2gpt.io.shards import BadLine, JsonlWriter, read_jsonl, read_lines

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False,
    allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
records = st.lists(st.dictionaries(texts, values, max_size=4), max_size=8)


def write(path: Path, content: list[dict[str, Any]]) -> Path:
    with JsonlWriter(path) as writer:
        for record in content:
            writer.write(record)
    return path


def reasons(path: Path) -> list[tuple[int, str]]:
    return [(bad.line, bad.reason) for bad in read_jsonl(path) if isinstance(bad, BadLine)]


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(records)
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    path = write(tmp_path_factory.mktemp("shard") / "x.jsonl.zst", content)
    assert list(read_jsonl(path)) == content
    lines = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read().splitlines()
    assert [json.loads(line) for line in lines] == content  # others read it too


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    content = [{"id": str(number), "text": "some text " * number} for number in range(500)]
    first = write(tmp_path / "a.jsonl.zst", content).read_bytes()
    assert write(tmp_path / "b.jsonl.zst", content).read_bytes() == first
    # Fixed: a change of level or library that changes the bytes should not go unnoticed.
    assert zstandard.get_frame_parameters(first).has_checksum
    unpacked = zstandard.ZstdDecompressor().stream_reader(first).read()
    expected = b"".join(orjson.dumps(record) + b"\n" for record in content)
    assert hashlib.sha256(unpacked).digest() == hashlib.sha256(expected).digest()


def test_a_shard_without_records_is_a_valid_frame(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl.zst", [])
    assert path.stat().st_size > 0
    assert list(read_jsonl(path)) == []
    assert zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read() == b""


def test_an_error_leaves_no_shard_and_no_draft(tmp_path: Path) -> None:
    with pytest.raises(TypeError), JsonlWriter(tmp_path / "x.jsonl.zst") as writer:
        writer.write({"text": "fine"})
        writer.write({"text": object()})
    assert list(tmp_path.iterdir()) == []


def test_the_writer_counts_records_and_bytes_of_text(tmp_path: Path) -> None:
    with JsonlWriter(tmp_path / "x.jsonl.zst") as writer:
        writer.write({"a": "ä"})
        writer.write({})
    assert (writer.count, writer.bytes) == (2, len('{"a":"ä"}\n'.encode()) + len(b"{}\n"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not_json"),
        (b"not json", "not_json"),
        (b'{"a": 1} {"b": 2}', "not_json"),
        (b'{"text": "\xff\xfe"}', "not_json"),
        (b'{"text": "\\ud800"}', "not_json"),  # a lone surrogate is no character
        (b'{"text": "\0"}', "not_json"),
        (b'{"a": NaN}', "not_json"),
        (b"\0\0\0\0", "not_json"),
        (b"\x1b[31m", "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, "not_json"),
        (b"[1, 2]", "not_an_object"),
        (b'"text"', "not_an_object"),
        (b"null", "not_an_object"),
        (b"17", "not_an_object"),
    ],
)
def test_a_bad_line_costs_that_line_only(tmp_path: Path, line: bytes, reason: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":1}\n' + line + b'\n{"a":3}\n')
    first, bad, last = read_jsonl(path)
    assert (first, bad, last) == ({"a": 1}, BadLine(str(path), 2, reason), {"a": 3})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n\n\n", []),
        (b'{"a":1}', [{"a": 1}]),
        (b'{"a":1}\n', [{"a": 1}]),
        (b'{"a":1}\r\n{"a":2}\r\n', [{"a": 1}, {"a": 2}]),
        (b'\xef\xbb\xbf{"a":1}\n{"a":2}', [{"a": 1}, {"a": 2}]),
        (b'{"a":1}\n\n\r\n{"a":2}', [{"a": 1}, {"a": 2}]),
        (b' \t{"a":1} \n  \t\n{"a":2}', [{"a": 1}, {"a": 2}]),
        (b'{"a":"\xe2\x80\xa8\xc2\x85\\u0000"}', [{"a": "\u2028\x85\0"}]),  # not ends of lines
        (b'{"a":"\\ud83d\\ude00"}', [{"a": "\N{GRINNING FACE}"}]),
    ],
)
def test_ends_marks_and_spaces(tmp_path: Path, content: bytes, expected: object) -> None:
    for path, data in ((tmp_path / "x.jsonl", content),
                       (tmp_path / "x.jsonl.gz", gzip.compress(content))):  # fmt: skip
        path.write_bytes(data)
        assert list(read_jsonl(path)) == expected


def test_lines_are_numbered_as_an_editor_does(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\n{"a":1}\n\nbad\r\n{"a":2}\nbad')
    assert reasons(path) == [(4, "not_json"), (6, "not_json")]
    assert [number for number, _ in read_lines(path)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("end", [b"\n", b""])
def test_an_over_long_line_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    monkeypatch.setattr(module, "MAX_LINE", 100)
    path = tmp_path / "x.txt"
    fits = b"x" * 100
    for excess in (1, 2, 99, 100, 101, 1000):
        path.write_bytes(b"a\n" + b"y" * (100 + excess) + b"\n" + fits + b"\nb" + end)
        assert list(read_lines(path)) == [
            (1, b"a"), (2, BadLine(str(path), 2, "line_too_long")), (3, fits), (4, b"b"),
        ]  # fmt: skip
    path.write_bytes(b"y" * 500 + end)
    assert list(read_lines(path)) == [(1, BadLine(str(path), 1, "line_too_long"))]


@pytest.mark.parametrize("ending", ["zst", "gz"])
def test_a_cut_stream_gives_what_was_whole_and_says_where_it_broke(
    tmp_path: Path, ending: str
) -> None:
    lines = b"".join(b'{"a":%d}\n' % (number * 7919) for number in range(100_000))
    pack = {"zst": zstandard.compress, "gz": gzip.compress}[ending]
    path = tmp_path / f"x.jsonl.{ending}"
    whole = pack(lines)
    for length in (3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        *good, bad = read_jsonl(path)
        assert isinstance(bad, BadLine)
        assert bad.reason == "broken_compression"
        assert good == [{"a": number * 7919} for number in range(len(good))]
        assert bad.line == len(good) + 1


@pytest.mark.parametrize("ending", ["zst", "gz", "bz2", "xz"])
def test_a_file_that_is_no_archive_is_broken_from_its_start(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.jsonl.{ending}"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert reasons(path) == [(1, "broken_compression")]


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.zst", "jsonl.gz", "jsonl.xz", "jsonl.bz2"])
def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, ending: str) -> None:
    missing, folder = tmp_path / f"missing.{ending}", tmp_path / f"folder.{ending}"
    folder.mkdir()
    for path in (missing, folder):
        with pytest.raises(InputError, match=path.name):
            list(read_jsonl(path))
