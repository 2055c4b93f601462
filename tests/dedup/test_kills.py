"""Killed with SIGKILL in the middle of each step and started again: the same bytes."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.dedup.corpora import Outcome, deduplicate_shards, document, edited, texts, write_shards
from typer.testing import CliRunner

from web2gpt.config.dedup import Dedup
from web2gpt.dedup.command import app

STALL = """
import importlib, sys, time

place, *arguments = sys.argv[1:]
module, *owners, name = place.split(":")
owner = importlib.import_module(module)
for part in owners:
    owner = getattr(owner, part)

def stall(*_, **__):
    print("stalled", flush=True)
    time.sleep(600)

setattr(owner, name, stall)
sys.argv = ["web2gpt", "dedup", *arguments]
importlib.import_module("web2gpt.cli").main()
"""
PLACES = [
    ("signatures", "web2gpt.io.work:WorkFolder:publish"),
    ("buckets", "web2gpt.dedup.buckets:_shared"),
    ("pairs", "web2gpt.dedup.pairs:measure"),
    ("pairs", "web2gpt.dedup.sets:similarity"),
    ("clusters", "web2gpt.dedup.clusters:write_verdicts"),
    ("remove", "web2gpt.io.stage:ShardJob:drop"),
]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    draw = random.Random(6)
    originals = texts(30, 100)
    copies = [edited(text, draw.randrange(3), draw) for text in originals]
    documents = [document(text, number) for number, text in enumerate([*originals, *copies])]
    return write_shards(tmp_path_factory.mktemp("kills"), documents, 1)


@pytest.fixture(scope="module")
def finished(shards: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    outcome: Outcome = deduplicate_shards(folder, shards, Dedup())
    assert len(outcome.removed) >= 25
    return folder


def test_the_steps_go_on_after_a_kill_to_the_same_bytes(
    shards: list[Path], finished: Path, tmp_path: Path
) -> None:
    lines = commands(shards[0], tmp_path)
    done = set[str]()
    for step, place in PLACES:
        for earlier in [name for name in lines if name not in done]:
            if earlier == step:
                break
            succeed(lines[earlier])
            done.add(earlier)
        kill_at(place, lines[step])
        assert not (tmp_path / lines[step][lines[step].index("--output") + 1]).exists()
    succeed(lines["remove"])
    pairs = {
        "signatures.parquet": "signatures/test-0000.parquet",
        "buckets.parquet": "buckets-0.parquet",
        "pairs.parquet": "pairs.parquet",
        "clusters.parquet": "clusters.parquet",
        "kept.jsonl.zst": "deduped/test-0000.jsonl.zst",
        "rejected.jsonl.zst": "rejected/test-0000.jsonl.zst",
    }
    for ours, theirs in pairs.items():
        assert (tmp_path / ours).read_bytes() == (finished / theirs).read_bytes(), ours


def commands(documents: Path, folder: Path) -> dict[str, list[str]]:
    """The command line of each step."""
    files = {
        name: str(folder / f"{name}.{'jsonl.zst' if name in ('kept', 'rejected') else 'parquet'}")
        for name in ("signatures", "buckets", "pairs", "clusters", "kept", "rejected")
    }
    given = ["--documents", str(documents)]
    both = ["--signatures", files["signatures"], *given]
    lines = {
        "signatures": [*given, "--output", files["signatures"]],
        "buckets": [*both[:2], "--output", files["buckets"]],
        "pairs": [*both, "--buckets", files["buckets"], "--output", files["pairs"]],
        "clusters": [*both, "--pairs", files["pairs"], "--output", files["clusters"]],
        "remove": [
            *given, "--clusters", files["clusters"], "--output", files["kept"],
            "--rejected", files["rejected"], "--stats", str(folder / "stats.json"),
        ],
    }  # fmt: skip
    return {
        step: [step, *line, "--work", str(folder / "work" / step)] for step, line in lines.items()
    }


def kill_at(place: str, line: list[str]) -> None:
    """Start a step, and kill its process once it has come to ``place``."""
    command = [sys.executable, "-c", STALL, place, *line]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any(said.strip() == "stalled" for said in process.stdout)
        process.kill()


def succeed(line: list[str]) -> None:
    result = CliRunner().invoke(app, line, catch_exceptions=False)
    assert result.exit_code == 0, result.output
