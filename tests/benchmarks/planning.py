"""Time and memory of planning the whole chain, by number of shards: ``planning.py 1024 4096``.

A dry run of ``all`` over one source of URLs in which nothing was made yet, in a process of its own.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parents[2]


def plan(shards: int) -> str:
    """One row of the table. Peak memory is that of all plans so far: ask for few shards first."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "urls.txt").write_text("http://example.com/\n")
        source = {"name": "site", "kind": "urls", "paths": ["urls.txt"]}
        config = {
            "data": {"name": "big", "shards": shards},
            "input": [source],
            "fetch": {"contact": "crawl@example.com"},
        }
        (Path(folder) / "config.yaml").write_text(yaml.safe_dump(config))
        command = [
            sys.executable,
            "-m",
            "snakemake",
            "--cores",
            "64",
            "--dry-run",
            "--quiet",
            "all",
        ]
        command += ["--snakefile", str(REPOSITORY / "workflow/Snakefile"), "--", "all"]
        begun, before = time.monotonic(), processor_seconds()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        seconds, busy = time.monotonic() - begun, processor_seconds() - before
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    load = os.getloadavg()[0]
    return f"| {shards:,} | {seconds:.0f} s | {busy:.0f} s | {peak:.0f} MB | {load:.0f} |"


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print("| shards | time | processor time | memory | load |\n|---|---|---|---|---|")
    for count in map(int, sys.argv[1:]):
        print(plan(count), flush=True)
