"""JSON lines from end to end: two fields of the records, and a dump against an earlier one."""

import inspect
import json
import statistics
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow.parquet
import pytest
from tests.workflow.project import Project

from web2gpt.io.shards import BadLine, read_jsonl
from web2gpt.tokens.indexed import IndexedDataset

TOKENS = "results/data/{}/tokens"


def records() -> list[dict[str, Any]]:
    """Real prose in two fields: a function's documentation, and its module's."""
    found = [inspect.getdoc(value) for module in (statistics, textwrap, inspect)
             for _, value in inspect.getmembers(module, inspect.isfunction)]  # fmt: skip
    body = [text for text in found if text and len(text.split()) > 30]
    return [
        {
            "meta": {"title": f"{text.split('.')[0]}: title number {n}"},
            "content": text,
            "id": f"r{n}",
        }
        for n, text in enumerate(dict.fromkeys(body))
    ]


def config(name: str, **dedup: Any) -> dict[str, Any]:
    common = {"kind": "jsonl", "paths": [f"{name}.jsonl"]}
    return {
        "data": {"name": name, "shards": 2},
        "run": {"name": name},
        "input": [
            {"name": "bodies", **common, "keys": {"text": "content", "id": "id"}, "weight": 3},
            {"name": "titles", **common, "keys": {"text": "meta.title", "id": "id"}, "weight": 1,
             "enter": "tokenize"},
        ],
        "dedup": dedup,
        "clean": {"min_tokens": 10},
        "tokenizer": {"vocab_size": 400},
        "index": {"split": "9,1"},
        "model": {"n_layer": 1, "n_embd": 16, "n_head": 1, "n_positions": 16},
        "train": {"steps": 10, "micro_batch_size": 4, "global_batch_size": 4, "device": "cpu"},
    }  # fmt: skip


def kept(project: Project, name: str) -> list[dict[str, Any]]:
    corpus = project.folder / f"results/data/{name}/corpus/corpus.jsonl.zst"
    return [one for one in read_jsonl(corpus) if not isinstance(one, BadLine)]


@pytest.mark.long
def test_two_fields_and_a_second_dump_against_the_first(tmp_path: Path) -> None:
    lines = [orjson.dumps(record) for record in records()]
    half = len(lines) // 2
    (tmp_path / "old.jsonl").write_bytes(b"\n".join([*lines[:half], b"{", b"\xff"]))
    (tmp_path / "new.jsonl").write_bytes(b"\n".join(lines))
    project = Project(tmp_path, config("old"))
    project.config["limits"] = {"errors": 0.2}
    project.write_config(project.config)
    project.succeed("index")
    old = kept(project, "old")
    assert {one["source"] for one in old} == {"bodies", "titles"}
    texts = {record["content"] for record in records()} | {
        record["meta"]["title"] for record in records()
    }
    assert {one["text"] for one in old if one["source"] == "titles"} <= texts
    data = IndexedDataset(tmp_path / TOKENS.format("old") / "corpus_text_document")
    rows = pyarrow.parquet.read_table(tmp_path / TOKENS.format("old") / "documents.parquet")
    assert len(data) == len(rows) == len(old)
    manifest = json.loads((tmp_path / "results/runs/old/index/manifest.json").read_text())
    shares = {one["name"]: one["share"]["achieved"] for one in manifest["sources"]}
    assert shares == {"bodies": 0.75, "titles": 0.25}
    assert np.load(tmp_path / "results/runs/old/index/train.shuffle.npy").size >= 40

    project.write_config(config("new", against=["results/data/old/dedup/signatures"]))
    project.succeed("merge")
    bodies = [one["text"] for one in kept(project, "new") if one["source"] == "bodies"]
    assert bodies
    assert not {one["text"] for one in old if one["source"] == "bodies"} & set(bodies)

    assert project.planned("merge") == {}
    clusters = tmp_path / "results/data/old/dedup/clusters.parquet"
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(clusters).slice(1), clusters)
    assert {"dedup_pairs", "dedup_clusters", "dedup_remove"} <= set(project.planned("merge"))
