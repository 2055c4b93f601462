"""The demo's run in this checkout, made if it is not there: each plant found, each law kept."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from tests.workflow.project import REPOSITORY, Project
from transformers import GPT2LMHeadModel

from web2gpt.config.load import load_config
from web2gpt.io.shards import read_jsonl
from web2gpt.report.manifest import make_manifest

STAGES = ("urls", "fetch", "extract", "dedup", "clean", "merge", "tokenize")


@pytest.fixture(scope="module")
def demo() -> Project:
    config = yaml.safe_load((REPOSITORY / "config.yaml").read_text())
    project = Project(REPOSITORY, config, write=False)
    project.succeed("all")
    return project


@pytest.fixture(scope="module")
def data(demo: Project) -> Path:
    return demo.folder / "results/data/demo"


@pytest.fixture(scope="module")
def run(demo: Project) -> Path:
    return demo.folder / "results/runs/demo"


@pytest.fixture(scope="module")
def planted(demo: Project) -> dict[str, Any]:
    return json.loads((demo.folder / "resources/demo/planted.json").read_text())


@pytest.mark.parametrize("stage", ["urls", "fetch", "clean"])
def test_each_count_is_what_was_planted(data: Path, planted: dict[str, Any], stage: str) -> None:
    statistics = json.loads((data / f"stats/{stage}.json").read_text())
    assert statistics["dropped"] == planted[stage]["dropped"]
    assert not statistics["errors"]
    assert statistics["in"] == planted[stage].get("in", statistics["in"])


def test_nothing_is_lost_between_fetching_and_documents(
    data: Path, planted: dict[str, Any]
) -> None:
    statistics = json.loads((data / "stats/extract.json").read_text())
    assert (statistics["in"], statistics["kept"]) == (planted["fetch"]["kept"],) * 2


def test_the_planted_copies_and_no_other_page_are_removed(
    data: Path, planted: dict[str, Any]
) -> None:
    statistics = json.loads((data / "stats/dedup.json").read_text())
    assert sum(statistics["dropped"].values()) == planted["dedup"]["at_least"]
    assert set(statistics["dropped"]) == {"exact_duplicate", "near_duplicate"}


@pytest.mark.parametrize("stage", ["urls", "fetch", "clean"])
def test_each_planted_url_is_rejected_for_its_own_reason(
    data: Path, planted: dict[str, Any], stage: str
) -> None:
    rejected = Counter((record["url"], record["reason"]) for record in records(data, stage))
    for reason, urls in planted["lists"][stage].items():
        if reason == "duplicate":  # stands under the URL that was kept
            continue
        missing = [url for url in urls if not rejected[url, reason]]
        assert not missing, f"{stage}: {reason}"


def test_mojibake_is_mended(data: Path, planted: dict[str, Any]) -> None:
    (url,) = planted["lists"]["mended"]["mojibake"]
    texts = {
        document["url"]: document["text"]
        for shard in sorted((data / "clean").glob("*.jsonl.zst"))
        for document in read_jsonl(shard)
    }
    assert "â€" not in texts[url] and "Ã" not in texts[url]


@pytest.mark.parametrize("stage", STAGES)
def test_statistics_add_up(data: Path, stage: str) -> None:
    whole = json.loads((data / f"stats/{stage}.json").read_text())
    lost = sum(whole["dropped"].values()) + sum(whole["errors"].values())
    assert whole["in"] == whole["kept"] + lost
    parts = [json.loads(path.read_text()) for path in (data / f"stats/{stage}").glob("*.json")]
    if parts:
        assert sum(part["in"] for part in parts) == whole["in"]


def test_document_ids_are_unique_and_travel_to_the_tokens(data: Path) -> None:
    import pyarrow.parquet as pq

    corpus = list(read_jsonl(data / "corpus/corpus.jsonl.zst"))
    table = pq.read_table(data / "tokens/documents.parquet").to_pydict()
    assert table["id"] == [document["id"] for document in corpus]
    assert len(set(table["id"])) == len(corpus)
    assert set(table["source"]) == {"demo"}


def test_the_model_learns_more_than_how_often_tokens_occur(data: Path, run: Path) -> None:
    """Validation loss, by transformers, at least 1 nat below the unigram entropy."""
    model = GPT2LMHeadModel.from_pretrained(run / "model").eval()
    tokens = np.fromfile(data / "tokens/corpus_text_document.bin", dtype=np.uint16)
    idx = (data / "tokens/corpus_text_document.idx").read_bytes()
    count = int.from_bytes(idx[18:26], "little")
    lengths = np.frombuffer(idx, "<i4", count, 34).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    documents = np.unique(np.load(run / "index/valid.document.npy"))
    valid = np.concatenate([tokens[starts[d] : starts[d + 1]] for d in documents]).astype(np.int64)
    window = model.config.n_positions
    batch = torch.from_numpy(valid[: 48 * window].reshape(-1, window))
    with torch.inference_mode():
        loss = float(model(input_ids=batch, labels=batch).loss)
    share = np.bincount(valid) / len(valid)
    entropy = -float((share[share > 0] * np.log(share[share > 0])).sum())
    assert loss < entropy - 1.0


def test_the_resolved_configuration_is_the_one_that_was_given(demo: Project, run: Path) -> None:
    resolved = yaml.safe_load((run / "config.yaml").read_text())
    assert load_config(resolved) == load_config(demo.config)


def test_the_manifest_holds_the_hash_of_each_artifact(demo: Project, run: Path) -> None:
    files = json.loads((run / "manifest.json").read_text())["files"]
    assert {"results/runs/demo/model/model.safetensors", "resources/demo/urls.txt"} <= set(files)
    for name, state in files.items():
        path = demo.folder / name
        assert make_manifest([path])["files"][str(path)] == state


def test_samples_have_text(run: Path) -> None:
    lines = (run / "samples/samples.jsonl").read_text().splitlines()
    samples = [json.loads(line) for line in lines]
    assert samples
    for sample in samples:
        assert {"prompt", "text", "length", "finished"} <= set(sample) and sample["text"].strip()


def records(data: Path, stage: str) -> Iterator[dict[str, Any]]:
    for shard in sorted((data / f"rejected/{stage}").glob("*.jsonl.zst")):
        for record in read_jsonl(shard):
            assert isinstance(record, dict)
            yield record
