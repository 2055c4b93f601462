"""Merging copies frames where it may, and reads any other packing in bounded pieces."""

import gzip
from pathlib import Path

import orjson
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.merge.test_corpus import document, merged, shard

from web2gpt.io import shards as shard_files
from web2gpt.merge import blocks as reading
from web2gpt.merge.blocks import read_blocks


@pytest.fixture
def small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_files, "FRAME_BYTES", 6000)


def frames_of(content: bytes) -> list[bytes]:
    found = []
    while content:
        frame = zstandard.ZstdDecompressor().decompressobj()
        frame.decompress(content)
        found.append(content[: len(content) - len(frame.unused_data)])
        content = frame.unused_data
    return found


@pytest.mark.usefixtures("small_frames")
def test_where_nothing_is_asked_the_corpus_is_the_shards_frames(tmp_path):
    paths = [
        shard(tmp_path / f"{name}.jsonl.zst", [document(n, name) for n in range(300)])
        for name in "ba"
    ]
    found, files, _ = merged(tmp_path, paths)
    wanted = [frame for path in paths for frame in frames_of(path.read_bytes())]
    corpus = frames_of(files.documents.read_bytes())
    assert len(wanted) > 10
    assert corpus == wanted
    assert found == [document(n, name) for name in "ba" for n in range(300)]


@pytest.mark.usefixtures("small_frames")
def test_a_frame_that_loses_a_document_is_written_anew(tmp_path):
    records = [document(n) for n in range(300)]
    records[100] = records[7]
    path = shard(tmp_path / "a.jsonl.zst", records)
    found, files, statistics = merged(tmp_path, [path])
    assert found == records[:100] + records[101:]
    assert statistics.errors == {"duplicate_id": 1}
    before, after = frames_of(path.read_bytes()), frames_of(files.documents.read_bytes())
    assert len(set(before) & set(after)) >= len(before) - 2


def write_foreign(path: Path, lines: bytes, packing: str) -> Path:
    """The lines in a form that our writer does not make."""
    compressor = zstandard.ZstdCompressor()
    match packing:
        case "one stream":
            streamed = compressor.compressobj()
            content = streamed.compress(lines) + streamed.flush()
        case "frames that cut lines":
            cut = [lines[start : start + 777] for start in range(0, len(lines), 777)]
            content = b"".join(map(compressor.compress, cut))
        case "no end of line":
            content = compressor.compress(lines.rstrip(b"\n"))
        case "blank lines":
            content = compressor.compress(lines.replace(b"\n", b"\n\n \n"))
        case _:
            path = path.with_suffix(".gz")
            content = gzip.compress(lines)
    path.write_bytes(content)
    return path


PACKINGS = ("one stream", "frames that cut lines", "no end of line", "blank lines", "gzip")


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("largest", [2000, 1 << 20])
def test_other_packings_are_read(tmp_path, monkeypatch, packing, largest):
    monkeypatch.setattr(reading, "LARGEST", largest)
    monkeypatch.setattr(reading, "READ", 500)
    records = [document(n) for n in range(200)]
    lines = b"".join(orjson.dumps(record) + b"\n" for record in records)
    path = write_foreign(tmp_path / "a.jsonl.zst", lines, packing)
    found, _, statistics = merged(tmp_path, [path])
    assert found == records
    assert statistics.read == 200


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from([b"a", b"\n", b"bcd", b"\n\n"]), max_size=9), max_size=6))
def test_blocks_are_all_lines_in_order(tmp_path_factory, frames):
    path = tmp_path_factory.mktemp("blocks") / "a.zst"
    contents = [b"".join(pieces) for pieces in frames]
    path.write_bytes(b"".join(map(zstandard.ZstdCompressor().compress, contents)))
    blocks = list(read_blocks(path))
    assert b"".join(block.lines for block in blocks) == b"".join(contents)
    assert all(block.lines.endswith(b"\n") for block in blocks[:-1] if block.lines)
    for block in blocks:
        if block.frame is not None:
            assert zstandard.ZstdDecompressor().decompress(block.frame) == block.lines
