"""From the corpus to .bin/.idx."""

import io
import json
import struct
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import tokenizers
import zstandard

from web2gpt.io.frames import FrameWriter
from web2gpt.io.shards import read_jsonl
from web2gpt.tokens.tokenize import PartMaker, TokenizeFiles
from web2gpt.tokens.verify import verify_dataset

Run = Callable[..., TokenizeFiles]


def contents(files: TokenizeFiles) -> list[bytes]:
    outputs = [files.bin, files.idx, files.documents, files.rejected]
    stats = json.loads(files.stats.read_text())
    del stats["time"]
    return [*(path.read_bytes() for path in outputs), json.dumps(stats).encode()]


def write_lines(folder: Path, lines: list[bytes]) -> None:
    """A corpus of one frame, whatever its lines are."""
    data = zstandard.ZstdCompressor().compress(b"".join(line + b"\n" for line in lines))
    (folder / "corpus.jsonl.zst").write_bytes(data)
    frame = {
        "offset": 0,
        "size": len(data),
        "first_document": 0,
        "documents": len(lines),
        "text_bytes": 100,
        "digest": blake2b(data, digest_size=8).hexdigest(),
    }
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist([frame]), folder / "corpus.frames.parquet"
    )


@pytest.fixture
def folder(make_corpus: Callable[..., Path], texts: list[str], train: Callable[..., Path]) -> Path:
    folder = make_corpus(texts)
    train(folder)
    return folder


def test_an_independent_reading_decodes_to_the_corpus(folder: Path, encode: Run) -> None:
    files = encode(folder)
    idx = files.idx.read_bytes()
    magic, version, code, count, entries = struct.unpack_from("<9sQBQQ", idx)
    assert (magic, version, code, entries) == (b"MMIDIDX\0\0", 1, 8, count + 1)
    lengths = struct.unpack_from(f"<{count}i", idx, 34)
    pointers = struct.unpack_from(f"<{count}q", idx, 34 + 4 * count)
    index = struct.unpack_from(f"<{entries}q", idx, 34 + 12 * count)
    assert index == tuple(range(count + 1))
    assert len(idx) == 34 + 12 * count + 8 * entries
    data = files.bin.read_bytes()
    tokenizer = tokenizers.Tokenizer.from_file(str(files.tokenizer))
    lines = io.TextIOWrapper(
        zstandard.ZstdDecompressor().stream_reader(
            files.corpus.open("rb"), read_across_frames=True
        ),
        encoding="utf-8",
    )
    records = [record for record in map(json.loads, lines) if record["text"]]
    assert len(records) == count
    for number, record in enumerate(records):
        ids = struct.unpack_from(f"<{lengths[number]}H", data, pointers[number])
        assert ids[-1] == 0
        assert tokenizer.decode(ids[:-1], skip_special_tokens=False) == record["text"]
    rows = pyarrow.parquet.read_table(files.documents).to_pylist()
    assert [row["id"] for row in rows] == [record["id"] for record in records]
    assert set(rows[0]) == {"id", "url", "source", "held_out"}
    assert [row["held_out"] for row in rows] == ["held_out" in record for record in records]
    assert {row["held_out"] for row in rows} == {True, False}
    verify_dataset(files.idx)


def test_bytes_do_not_depend_on_threads_or_parts(folder: Path, encode: Run) -> None:
    first = contents(encode(folder, "one", threads=1))
    assert contents(encode(folder, "three", threads=3)) == first
    parts = contents(encode(folder, "parts", threads=2, part_bytes=1))
    assert parts[:2] == first[:2]
    assert list(read_jsonl(folder / "parts/rejected.jsonl.zst")) == list(
        read_jsonl(folder / "one/rejected.jsonl.zst")
    )


def test_nothing_forks(folder: Path, encode: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fork", lambda: pytest.fail("forked"))
    encode(folder, "unforked", threads=3)


def test_the_same_bytes_without_fastokens(
    folder: Path, encode: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = contents(encode(folder, "fast"))
    monkeypatch.setitem(__import__("sys").modules, "fastokens", None)
    assert contents(encode(folder, "slow")) == fast


def test_a_killed_run_keeps_its_finished_parts(
    folder: Path, encode: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = contents(encode(folder, "whole", part_bytes=1))
    make, made = PartMaker.make, []

    def stop_at_third(self: PartMaker, part: object, *rest: object) -> None:
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(part)
        make(self, part, *rest)

    monkeypatch.setattr(PartMaker, "make", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        encode(folder, "broken", part_bytes=1)
    assert not list((folder / "broken").glob("*.bin"))
    monkeypatch.setattr(PartMaker, "make", lambda self, part, *rest: (
        made.append(part), make(self, part, *rest)))  # fmt: skip
    assert contents(encode(folder, "broken", part_bytes=1)) == expected
    assert len(made) == len({part.number for part in made})


def test_bad_records_are_counted_and_passed_over(folder: Path, encode: Run) -> None:
    lines = [
        b'{"id": "a", "url": null, "text": "the fox", "source": "web"}',
        b'{"id": "b"}',
        b'{"id": "c", "text": 3}',
        b"[]",
        b"{",
        b'{"id": "d", "text": "\\ud800"}',
        b'{"id": "e", "url": null, "text": "", "source": "web"}',
        b'{"id": "f", "url": null, "text": "dogs", "source": "web"}',
    ]
    write_lines(folder, lines)
    files = encode(folder)
    stats = json.loads(files.stats.read_text())
    assert stats["errors"] == {"no_text": 2, "not_an_object": 1, "not_json": 2}
    assert (stats["in"], stats["kept"], stats["out"], stats["dropped"]) == (8, 2, 2, {"empty": 1})
    rejected = list(read_jsonl(files.rejected))
    assert [record["line"] for record in rejected] == [2, 3, 4, 5, 6, 7]
    assert len(verify_dataset(files.bin)) == 2


def test_an_empty_corpus_gives_an_empty_dataset(folder: Path, encode: Run) -> None:
    paths = folder / "corpus.jsonl.zst", folder / "corpus.frames.parquet"
    with FrameWriter(*paths, 100):
        pass
    data = verify_dataset(encode(folder).idx)
    assert (len(data), len(data.tokens)) == (0, 0)
    assert np.array_equal(data.document_index, [0])
