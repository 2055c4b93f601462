"""The files of a small made-up run, as the stages write them."""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from web2gpt.config.load import dump_config, load_config
from web2gpt.io.atomic import write_json, write_text
from web2gpt.io.frames import FrameWriter
from web2gpt.io.shards import JsonlWriter
from web2gpt.io.statistics import Statistics
from web2gpt.report.evidence import Evidence, gather
from web2gpt.report.page import render

HOSTILE = "</div></pre><script>alert(1)</script><img src=http://x.example/y.png onerror=alert(2)>"


@dataclass(frozen=True)
class RunFolders:
    data: Path
    run: Path


@pytest.fixture
def folders(tmp_path: Path) -> RunFolders:
    """A run of one's own, to be changed."""
    return make_run(tmp_path)


@pytest.fixture(scope="session")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> RunFolders:
    """The same run, shared: to be read only."""
    return make_run(tmp_path_factory.mktemp("unchanged"))


@pytest.fixture(scope="session")
def evidence(unchanged: RunFolders) -> Evidence:
    return gather(unchanged.data, unchanged.run)


@pytest.fixture(scope="session")
def page(evidence: Evidence) -> str:
    return render(evidence)


def make_run(folder: Path) -> RunFolders:
    made = RunFolders(folder / "data" / "corpus", folder / "runs" / "first")
    stats = made.data / "stats"
    for stage in (
        Statistics("clean", "documents", 80, 70, 71, Counter(language=10), time={"seconds": 2.5}),
        Statistics(
            "urls", "lines", 100, 90, 90, Counter(duplicate=7, extension=1), Counter(malformed=2)
        ),
        Statistics(
            "tokenize", "documents", 71, 71, 71, figures=Counter(tokens=123456, text_bytes=493824)
        ),
    ):
        stage.write(stats / f"{stage.stage}.json")
    lines = [
        {"step": step, "loss": 3 + 5 * math.exp(-step / 80), "lr": 1e-3, "grad_norm": 1.5,
         "tokens_per_second": 20_000.0, "peak_memory_gib": 0.75,
         **({"skipped": True} if step == 50 else {})}
        for step in range(10, 310, 10)
    ]  # fmt: skip
    valid = [{"step": 100, "valid_loss": 4.5}, {"step": 200, "valid_loss": 3.5}]
    write_text(
        made.run / "train" / "metrics.jsonl",
        b"\n".join(map(orjson.dumps, lines + valid)).decode() + "\n",
    )
    sample = {"prompt": "The <b>", "text": f"{HOSTILE} {{{{7*7}}}} \0\x1b[31m", "finished": True}
    write_text(made.run / "samples" / "samples.jsonl", orjson.dumps(sample).decode() + "\n")
    write_json(made.run / "evaluation" / "evaluation.json", {"loss": 3.25, "perplexity": 25.79})
    source = {"name": "a", "kind": "jsonl", "paths": ["a.jsonl"]}
    config = load_config({"input": [source], "model": {"n_layer": 6}})
    write_text(made.run / "config.yaml", dump_config(config))
    write_json(made.run / "manifest.json", {
        "python": "3.11.7", "packages": {"torch": "2.13.0"},
        "files": {"corpus.bin": {"bytes": 7, "blake2b": "ab" * 32}},
    })  # fmt: skip
    make_documents(made.data)
    make_tokenizer(made.data / "tokenizer" / "tokenizer.json")
    starts = [{"step": step, "time": 1.0, "estimated_bytes": 1 << 29} for step in (0, 120)]
    write_text(
        made.run / "checkpoints" / "0123" / "starts.jsonl",
        b"\n".join(map(orjson.dumps, starts)).decode() + "\n",
    )
    write_text(made.data / "benchmarks" / "extract" / "a-0000.tsv", "s\tmax_rss\n10.5\t100.0\n")
    write_text(made.data / "benchmarks" / "extract" / "a-0001.tsv", "s\tmax_rss\n4.5\tNA\n")
    write_text(made.run / "benchmarks" / "train.jsonl", '{"s": 60.0, "max_rss": 900.0}\n')
    return made


def make_documents(data: Path) -> None:
    """Eight documents of three domains: two are copies of one, one is French."""
    urls = [f"http://{host}.example.org/{number}" for number, host in enumerate("aabb")]
    urls += ["http://x.test/", "http://y.test/1", "http://y.test/2", "http://192.0.2.7/"]
    documents = [
        {"id": f"{number:032x}", "url": url, "text": f"{HOSTILE} {'word ' * 10 * (number + 1)}",
         "language": "en"}
        for number, url in enumerate(urls)
    ]  # fmt: skip
    with JsonlWriter(data / "documents" / "a-0000.jsonl.zst") as writer:
        for document in documents:
            writer.write(document)
    rows = {
        "url": [one["url"] for one in documents],
        "characters": [len(one["text"]) for one in documents],
    }
    (data / "dedup" / "signatures").mkdir(parents=True)
    pq.write_table(pa.table(rows), data / "dedup" / "signatures" / "a-0000.parquet")
    ids = [one["id"] for one in documents]
    clusters = {
        "id": [ids[1], ids[2], *ids],
        "kept": [ids[0], ids[0], *ids],
        "similarity": [0.9, 1.0, *[None] * 8],
    }
    pq.write_table(pa.table(clusters), data / "dedup" / "clusters.parquet")
    with JsonlWriter(data / "rejected" / "clean" / "a-0000.jsonl.zst") as writer:
        writer.write({"id": ids[3], "reason": "language", "figure": "fr 0.999"})
        writer.write({"id": ids[4], "reason": "short", "figure": 3})
    corpus = data / "corpus" / "corpus.jsonl.zst"
    with FrameWriter(corpus, corpus.with_name("corpus.frames.parquet"), 1 << 20) as frames:
        for document in (documents[0], *documents[5:]):
            frames.write(document)


def make_tokenizer(path: Path) -> None:
    """Byte-level BPE of a few tokens, stored as such files are: Ġ is a blank."""
    vocab = {"<|endoftext|>": 0, "a": 1, "Ġlongest": 2, "ÃŁ": 3}
    write_json(path, {"model": {"type": "BPE", "vocab": vocab}, "decoder": {"type": "ByteLevel"},
                      "added_tokens": [{"id": 0, "content": "<|endoftext|>"}]})  # fmt: skip
