"""The corpus: order, ids, counts, shuffle."""

from collections import Counter
from pathlib import Path

import pytest
import zstandard

from web2gpt.config.merge import Merge
from web2gpt.errors import InputError
from web2gpt.io.frames import read_documents, read_frames
from web2gpt.io.shards import Document, JsonlWriter, read_jsonl
from web2gpt.io.stage import ShardFiles
from web2gpt.io.statistics import Statistics
from web2gpt.merge import corpus as merging
from web2gpt.merge import shuffle as shuffling
from web2gpt.merge.corpus import merge_documents
from web2gpt.web.ids import document_id


def document(number: int, source: str = "a", text: str | None = None) -> Document:
    text = f"text number {number} " * (number % 7 + 1) if text is None else text
    url = f"http://example.org/{number}"
    return {"id": document_id(source, url), "url": url, "text": text, "source": source}


def shard(path: Path, documents: list[Document]) -> Path:
    with JsonlWriter(path) as writer:
        for record in documents:
            writer.write(record)
    return path


def merged(
    folder: Path, shards: list[Path], **settings: object
) -> tuple[list[Document], ShardFiles, Statistics]:
    files = ShardFiles(
        tuple(shards),
        folder / "corpus" / "corpus.jsonl.zst",
        folder / "rejected.jsonl.zst",
        folder / "merge.json",
        folder / "work",
        folder / "corpus" / "corpus.frames.parquet",
    )
    chosen = Merge.model_validate({"frame_bytes": 4096, **settings})
    merge_documents(files, chosen, rejected_text=False)
    assert files.frames
    frames = read_frames(files.frames, files.documents)
    found = [record for frame in frames for record in read_documents(files.documents, frame)]
    return found, files, Statistics.load(files.stats)


@pytest.fixture
def shards(tmp_path):
    return [
        shard(tmp_path / "b-0000.jsonl.zst", [document(n, "b") for n in range(100)]),
        shard(tmp_path / "a-0000.jsonl.zst", [document(n, "a") for n in range(200)]),
        shard(tmp_path / "none.jsonl.zst", []),
    ]


def test_the_corpus_is_the_shards_in_the_order_given(tmp_path, shards):
    found, _, statistics = merged(tmp_path, shards)
    assert found == [document(n, "b") for n in range(100)] + [document(n) for n in range(200)]
    assert statistics.figures == {
        "characters": sum(len(record["text"]) for record in found),
        "documents of a": 200,
        "documents of b": 100,
    }
    other, _, _ = merged(tmp_path / "other", shards[::-1])
    assert other == found[100:] + found[:100]


def test_a_second_document_of_an_id_and_empty_and_unsound_ones_are_left_out(tmp_path):
    records = [
        document(1),
        document(1, text="other text"),
        document(2, text=" \n"),
        {"id": "x", "text": "a"},
        {**document(3), "text": None},
    ]
    paths = [
        shard(tmp_path / "a.jsonl.zst", records),
        shard(tmp_path / "b.jsonl.zst", [document(1)]),
    ]
    found, files, statistics = merged(tmp_path, paths)
    assert found == [document(1)]
    assert statistics.errors == {"duplicate_id": 2, "bad_id": 1, "no_text": 1}
    assert statistics.dropped == {"empty": 1}
    reasons = Counter(record["reason"] for record in read_jsonl(files.rejected))
    assert reasons == {"duplicate_id": 2, "bad_id": 1, "no_text": 1, "empty": 1}


def test_a_line_that_is_not_json_costs_itself(tmp_path):
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(zstandard.compress(b'{"id": \n'))
    found, files, statistics = merged(tmp_path, [path])
    assert not found
    assert statistics.errors == {"not_json": 1}
    assert next(iter(read_jsonl(files.rejected)))["line"] == 1


def test_a_broken_shard_stops_the_stage_and_names_the_file(tmp_path, shards):
    shards[0].write_bytes(shards[0].read_bytes()[:-20])
    with pytest.raises(InputError, match=r"b-0000.jsonl.zst: broken"):
        merged(tmp_path, shards)


@pytest.mark.parametrize(("files", "in_memory"), [(1, 1 << 20), (7, 1 << 20), (2, 3000), (1, 1)])
def test_a_shuffle_is_a_new_order_by_seed(tmp_path, shards, files, in_memory, monkeypatch):
    monkeypatch.setattr(merging, "files_needed", lambda size: files)
    monkeypatch.setattr(shuffling, "FILE_BYTES", in_memory)
    monkeypatch.setattr(shuffling, "MOST_FILES", 3)
    plain, _, _ = merged(tmp_path / "plain", shards)
    orders = [
        merged(tmp_path / name, shards, shuffle=True, seed=seed)[0]
        for name, seed in (("one", 1), ("again", 1), ("two", 2))
    ]
    for order in orders:
        assert sorted(r["id"] for r in order) == sorted(r["id"] for r in plain)
        places = {record["id"]: place for place, record in enumerate(plain)}
        moved = [abs(places[record["id"]] - place) for place, record in enumerate(order)]
        assert 80 < sum(moved) / len(moved) < 120  # a third of 300, on average
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]


def test_the_same_shards_give_the_same_bytes(tmp_path, shards):
    for settings in ({}, {"shuffle": True}):
        sides = []
        for name in ("one", "two"):
            folder = tmp_path / f"{name}-{len(settings)}"
            _, files, _ = merged(folder, shards, **settings)
            sides.append([path.read_bytes() for path in files.outputs if path != files.stats])
        assert sides[0] == sides[1]


def test_a_share_is_held_out_by_id_alone(tmp_path):
    records = [document(n) for n in range(2000)]
    one = shard(tmp_path / "a.jsonl.zst", records)
    pieces = [{**document(n, "p"), "whole": records[n]["id"]} for n in range(50)]
    two = shard(tmp_path / "b.jsonl.zst", pieces + records[::-1])
    marked = {}
    for name, share, paths in (("a", 0.1, [one]), ("b", 0.1, [two]), ("c", 0.3, [one])):
        found, _, statistics = merged(tmp_path / name, paths, held_out=share)
        marked[name] = {record["id"] for record in found if record.get("held_out")}
        assert statistics.figures["held_out"] == len(marked[name])
        assert {record.get("held_out") for record in found} == {None, True}
        if name == "b":
            lots = {record["id"]: record.get("held_out") for record in found}
            assert all(lots[piece["id"]] == lots[piece["whole"]] for piece in pieces)
    assert 150 < len(marked["a"]) < 250
    assert marked["a"] == marked["b"] - {piece["id"] for piece in pieces}
    assert marked["a"] < marked["c"]
    assert 500 < len(marked["c"]) < 700
