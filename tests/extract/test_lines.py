"""Anybody's JSON lines: whatever is compressed and however it is broken, each line is accounted."""

import bz2
import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
import zstandard
from typer.testing import CliRunner

from web2gpt.cli import app
from web2gpt.io.atomic import read_json
from web2gpt.io.shards import read_jsonl
from web2gpt.web.ids import document_id

COMPRESS = {
    ".jsonl": bytes,
    ".json": bytes,
    ".jsonl.gz": gzip.compress,
    ".json.xz": lzma.compress,
    ".jsonl.bz2": bz2.compress,
    ".jsonl.zst": zstandard.ZstdCompressor().compress,
}


def run(tmp_path: Path, inputs: list[Path], *flags: str) -> tuple[list[Any], list[Any], Any]:
    names = ("documents", "rejected", "stats", "work")
    files = [word for name in names for word in (f"--{name}", str(tmp_path / f"{name}.zst"))]
    arguments = [word for path in inputs for word in ("--input", str(path))]
    CliRunner().invoke(
        app,
        ["extract", "--kind", "jsonl", "--source", "mine", *arguments, *files, *flags],
        catch_exceptions=False,
    )
    return (
        list(read_jsonl(tmp_path / "documents.zst")),
        list(read_jsonl(tmp_path / "rejected.zst")),
        read_json(tmp_path / "stats.zst"),
    )


@pytest.mark.parametrize("ending", COMPRESS)
def test_every_compression_is_read(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"input{ending}"
    lines = [json.dumps({"text": f"text {n}", "url": f"http://a.example/{n}"}) for n in range(3)]
    path.write_bytes(COMPRESS[ending]("\n".join(lines).encode()))
    documents, rejected, stats = run(tmp_path, [path])
    assert [document["text"] for document in documents] == ["text 0", "text 1", "text 2"]
    assert documents[1]["id"] == document_id("mine", f"{path}:2")
    assert documents[1]["url"] == "http://a.example/1"
    assert documents[1]["source"] == "mine"
    assert rejected == []
    assert (stats["unit"], stats["in"], stats["kept"], stats["out"]) == ("records", 3, 3, 3)


BAD = {
    "not_json": [b"not json", b'{"text": ', b"[" * 100_000],
    "not_an_object": [b"[1]", b'"text"', b"12"],
    "no_text": [b"{}", b'{"text": null}', b'{"body": "x"}'],
    "text_not_a_string": [b'{"text": 1}', b'{"text": ["x"]}'],
    "invalid_utf8": [b'{"text": "\xff\xfe"}', b'{"text": "caf\xe9"}'],
}


def test_bad_lines_go_to_rejected_with_file_line_and_reason(tmp_path: Path) -> None:
    good = b'{"text": "good"}'
    path = tmp_path / "input.jsonl"
    expected, lines = [], [good]
    for reason, bad in BAD.items():
        for line in bad:
            lines += [line, b""]
            expected.append((str(path), len(lines) - 1, reason))
    lines += [good, b'{"text": "half a li']
    expected.append((str(path), len(lines), "not_json"))
    path.write_bytes(b"\n".join(lines))
    documents, rejected, stats = run(tmp_path, [path])
    assert [(bad["file"], bad["line"], bad["reason"]) for bad in rejected] == expected
    assert len(documents) == 2
    assert stats["in"] == 2 + len(expected)
    assert sum(stats["errors"].values()) == len(expected)


def test_broken_off_compression_costs_the_rest_of_its_file_only(tmp_path: Path) -> None:
    lines = b"".join(json.dumps({"text": f"{n} {n * n}"}).encode() + b"\n" for n in range(5000))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines)[:-5000])
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "after"}\n')
    documents, rejected, _ = run(tmp_path, [tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl"])
    assert documents[-1]["text"] == "after"
    assert len(documents) > 100
    assert rejected[-1]["reason"] == "broken_compression"
    assert rejected[-1]["file"].endswith("a.jsonl.gz")


def test_keys_of_the_source_are_used_also_nested(tmp_path: Path) -> None:
    oscar = {
        "content": "text of a page",
        "warc_headers": {"warc-record-id": "<urn:1>", "warc-target-uri": "http://a.example/"},
        "metadata": {"identification": {"label": "en"}},
    }
    path = tmp_path / "oscar.jsonl"
    path.write_text(json.dumps(oscar))
    keys = ("--keys.text", "content", "--keys.id", "warc_headers.warc-record-id",
            "--keys.url", "warc_headers.warc-target-uri")  # fmt: skip
    documents, _, _ = run(tmp_path, [path], *keys)
    assert documents == [
        {"id": document_id("mine", "<urn:1>"), "url": "http://a.example/",
         "text": "text of a page", "source": "mine"}
    ]  # fmt: skip


def test_values_that_cannot_be_written_are_not_carried(tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl"
    values = ("9" * 30 + ', "odd": NaN', "-9223372036854775807", "NaN", '"\\ud800a"', "true", "[1]")
    path.write_text("".join(f'{{"text": "a", "n": {value}}}\n' for value in values))
    documents, _, stats = run(tmp_path, [path], "--keys.carry", "n")
    carried = [document.get("n", "none") for document in documents]
    assert carried == ["none", -(2**63) + 1, None, "a", "none", "none"]
    assert stats["errors"] == {}


def test_second_record_with_an_id_is_an_error_of_that_record(tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl"
    records = [
        {"id": 7, "text": "a"},
        {"id": "7", "text": "b"},
        {"text": "c"},
        {"id": 8, "text": "d"},
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    documents, rejected, stats = run(tmp_path, [path], "--keys.id", "id")
    assert [document["text"] for document in documents] == ["a", "d"]
    assert [(bad["reason"], bad["line"]) for bad in rejected] == [("duplicate_id", 2), ("no_id", 3)]
    assert stats["errors"] == {"duplicate_id": 1, "no_id": 1}


def test_text_that_utf8_cannot_hold_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl"
    path.write_text('{"text": "a\\ud800b\\u0000c \\ud83d\\ude00"}\n{"text": "n", "score": NaN}\n'
                    '{"text": "\\u0000 "}\n')  # fmt: skip
    documents, _, stats = run(tmp_path, [path])
    assert [document["text"] for document in documents] == ["abc 😀", "n"]
    assert stats["dropped"] == {"empty": 1}
