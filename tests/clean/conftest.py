"""Runs the stage's commands on a few documents, and reads back what they wrote."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from web2gpt.cli import app
from web2gpt.io.atomic import read_json
from web2gpt.io.shards import JsonlWriter, read_jsonl


@dataclass(frozen=True)
class Outcome:
    """What a shard's job left."""

    documents: list[dict[str, Any]]
    rejected: list[dict[str, Any]]
    stats: dict[str, Any]
    files: dict[str, bytes]


Stage = Callable[..., Outcome]


def write(path: Path, documents: list[dict[str, Any]]) -> Path:
    with JsonlWriter(path) as writer:
        for document in documents:
            writer.write(document)
    return path


@pytest.fixture
def run_stage(tmp_path: Path) -> Stage:
    """``run_stage(["clean"], documents, "--flag", ...)``."""
    count = iter(range(100))

    def run(command: list[str], documents: list[dict[str, Any]], *flags: str) -> Outcome:
        folder = tmp_path / str(next(count))
        shard = write(folder / "documents.jsonl.zst", documents)
        names = ("output", "rejected", "stats", "work")
        paths = {name: folder / f"{name}.jsonl.zst" for name in names}
        files = [word for name in names for word in (f"--{name}", str(paths[name]))]
        arguments = [*command, "--documents", str(shard), *files, *flags]
        CliRunner().invoke(app, arguments, catch_exceptions=False)
        return Outcome(
            list(read_jsonl(paths["output"])),
            list(read_jsonl(paths["rejected"])),
            read_json(paths["stats"]),
            {name: paths[name].read_bytes() for name in ("output", "rejected")},
        )

    return run
