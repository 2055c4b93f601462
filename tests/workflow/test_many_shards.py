"""Hundreds of shards: commands stay short enough for Linux, planning stays small."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.workflow.project import Project

LIMIT = 128 * 1024  # bytes of one argument of execve: bash -c hands the command over as one
WITH_PEAK = """
import resource, sys
from snakemake.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def sharded(folder: Path, shards: int) -> Project:
    """Nothing is there but a list of one URL: for dry runs."""
    (folder / "site").mkdir()
    (folder / "urls.txt").write_text("http://example.com/\n")
    config: dict[str, Any] = {
        "data": {"name": "big", "shards": shards},
        "run": {"name": "big"},
        "input": [{"name": "site", "kind": "urls", "paths": ["urls.txt"]}],
        "fetch": {"serve": "site"},
    }
    return Project(folder, config)


def commands(project: Project, target: str) -> list[str]:
    said = project.succeed("--dry-run", "--printshellcmds", "--", target)
    return re.findall(r"^Shell command: (.*)", said, re.MULTILINE)


def test_numbered_files_are_handed_over_as_ranges_that_bash_expands(tmp_path: Path) -> None:
    project = sharded(tmp_path, 40)
    found = commands(project, "manifest")
    pairs = next(command for command in found if "dedup pairs" in command)
    assert len(pairs) < 2000
    words = pairs.split("dedup pairs ")[1].split(" --buckets")[0]
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {words}"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    names = [f"urls-{number:04d}" for number in range(40)]
    assert printed == [
        *(f"--signatures=results/data/big/dedup/signatures/{name}.parquet" for name in names),
        *(f"--documents=results/data/big/documents/{name}.jsonl.zst" for name in names),
    ]
    assert any("results/data/big/fetch/urls-{0000..0039}.warc.gz" in each for each in found)


@pytest.mark.long
def test_a_thousand_shards_are_planned_in_less_than_a_gigabyte(tmp_path: Path) -> None:
    project = sharded(tmp_path, 1024)
    options = project.command("-n", "-p", "--", "all")[1:]
    wrapped = [sys.executable, "-c", WITH_PEAK, *options]
    done = subprocess.run(wrapped, cwd=tmp_path, capture_output=True, text=True, check=True)
    found = re.findall(r"^Shell command: (.*)", done.stdout, re.MULTILINE)
    assert len(found) > 5 * 1024 and max(map(len, found)) < LIMIT
    assert int(done.stdout.split()[-1]) < 1024 * 1024  # KiB
