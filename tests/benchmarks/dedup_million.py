"""The stage dedup as the workflow runs it, command by command, on a corpus of any size.

Steps of shards run two at a time, as ``snakemake --cores 2`` would; for each step: wall and CPU
seconds, and the largest resident set of a process.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.dedup_corpus import Corpus

COMMAND = [sys.executable, "-m", "web2gpt.cli", "dedup"]
SHARDS = 8
CORES = 2
Row = dict[str, Any]


def deduplicate_by_commands(corpus: Corpus, folder: Path) -> list[Row]:
    """Make the corpus if it is not there (not counted), then run all steps."""
    documents = sorted((folder / "documents").glob("*.jsonl.zst"))
    documents = documents or corpus.write(folder / "documents", SHARDS)
    signatures = [folder / f"signatures-{n}.parquet" for n in range(SHARDS)]
    buckets, pairs = folder / "buckets.parquet", folder / "pairs.parquet"
    clusters = folder / "clusters.parquet"
    given = _flags("--signatures", signatures)
    every = [*given, *_flags("--documents", documents)]
    rows = [
        _step("signatures", folder, [
            ["signatures", "--documents", str(shard), "--output", str(output)]
            for shard, output in zip(documents, signatures, strict=True)
        ]),
        _step("buckets", folder, [["buckets", *given, "--output", str(buckets)]]),
        _step("pairs", folder, [
            ["pairs", *every, "--buckets", str(buckets), "--output", str(pairs)]
        ]),
        _step("clusters", folder, [
            ["clusters", *every, "--pairs", str(pairs), "--output", str(clusters)]
        ]),
        _step("remove", folder, [
            ["remove", "--documents", str(shard), "--clusters", str(clusters),
             "--output", str(folder / f"kept-{n}.jsonl.zst"),
             "--rejected", str(folder / f"rejected-{n}.jsonl.zst"),
             "--stats", str(folder / f"stats-{n}.json")]
            for n, shard in enumerate(documents)
        ]),
    ]  # fmt: skip
    seconds = sum(row["seconds"] for row in rows)
    total = {"what": "all steps", "seconds": seconds, "cpu": sum(row["cpu"] for row in rows)}
    total |= {"MB": max(row["MB"] * row["at once"] for row in rows)}
    return [*rows, {**total, "documents/s": corpus.count / seconds}]


def _flags(name: str, paths: Sequence[Path]) -> list[str]:
    return [part for path in paths for part in (name, str(path))]


def _step(name: str, folder: Path, jobs: list[list[str]]) -> Row:
    """Run the jobs of a step, as many at once as there are cores."""
    start, cpu, peak = time.perf_counter(), 0.0, 0
    waiting, running = list(enumerate(jobs)), set[int]()
    while waiting or running:
        while waiting and len(running) < CORES:
            number, job = waiting.pop(0)
            work = folder / "work" / f"{name}-{number}"
            command = [*COMMAND, *job, "--work", str(work)]
            with (folder / f"{name}-{number}.log").open("w") as log:
                running.add(subprocess.Popen(command, stdout=log, stderr=log).pid)
        pid, status, usage = os.wait4(-1, 0)
        if status:
            logs = "\n".join(path.read_text()[-1000:] for path in folder.glob(f"{name}-*.log"))
            raise SystemExit(f"dedup {name} failed:\n{logs}")
        running.discard(pid)
        cpu += usage.ru_utime + usage.ru_stime
        peak = max(peak, usage.ru_maxrss)
    seconds = time.perf_counter() - start
    row = {"what": name, "seconds": seconds, "cpu": cpu, "MB": peak / 1024}
    print(row, flush=True)
    return {**row, "at once": min(CORES, len(jobs))}
