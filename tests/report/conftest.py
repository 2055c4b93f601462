"""The files of a small made-up run, as the stages write them."""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from web2gpt.config.load import dump_config, load_config
from web2gpt.io.atomic import write_json, write_text
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
        Statistics("tokenize", "documents", 71, 71, 71, figures=Counter(tokens=123456)),
    ):
        stage.write(stats / f"{stage.stage}.json")
    lines = [
        {"step": step, "loss": 3 + 5 * math.exp(-step / 80), "lr": 1e-3, "grad_norm": 1.5,
         "tokens_per_second": 20_000.0}
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
    write_json(made.run / "manifest.json", {"versions": {"torch": "2.13.0"}, "bin": "ab" * 32})
    write_text(made.data / "benchmarks" / "extract" / "a-0000.tsv", "s\tmax_rss\n10.5\t100.0\n")
    write_text(made.data / "benchmarks" / "extract" / "a-0001.tsv", "s\tmax_rss\n4.5\tNA\n")
    write_text(made.run / "benchmarks" / "train.jsonl", '{"s": 60.0, "max_rss": 900.0}\n')
    return made
