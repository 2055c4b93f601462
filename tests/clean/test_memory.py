"""Memory stays flat: ten times the documents take a stage no more than tens of bytes each."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.clean.chain import WORDS

from web2gpt.io.shards import JsonlWriter

pytestmark = pytest.mark.long
FLAT = 30 << 20  # bytes of noise between two runs
PER_DOCUMENT = 60  # bytes


def write_shard(path: Path, count: int) -> Path:
    draw = random.Random(1)
    with JsonlWriter(path) as writer:
        for number in range(count):
            text = " ".join(draw.choices(WORDS, k=120)) + f" {number}."
            writer.write({"id": f"{draw.getrandbits(128):032x}", "url": None, "text": text,
                          "source": "s"})  # fmt: skip
    return path


def peak(arguments: list[str]) -> int:
    """Largest resident size in bytes of a command."""
    script = (
        "import resource, sys; from web2gpt.cli import app\n"
        "try: app(sys.argv[1:])\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], check=True,
                          capture_output=True, text=True)  # fmt: skip
    return int(done.stderr.split()[-1]) * 1024


@pytest.mark.parametrize("stage", ["clean", "decontaminate count", "merge", "merge --shuffle"])
def test_memory_is_flat(tmp_path: Path, stage: str) -> None:
    peaks = []
    (tmp_path / "set.txt").write_text(" ".join(WORDS[:9]) + "\n")
    for count in (10_000, 100_000):
        shard = write_shard(tmp_path / f"{count}.jsonl.zst", count)
        files = {name: str(tmp_path / f"{count}-{name}") for name in
                 ("output", "corpus", "frames", "rejected", "stats", "work")}  # fmt: skip
        wanted = {"clean": ("output", "rejected", "stats"), "decontaminate count": ("output",)}
        names = wanted.get(stage, ("corpus", "frames", "rejected", "stats"))
        flags = [word for name in (*names, "work") for word in (f"--{name}", files[name])]
        extra = ["--against", str(tmp_path / "set.txt")] if "count" in stage else []
        peaks.append(peak([*stage.split(), "--documents", str(shard), *flags, *extra]))
    assert peaks[1] - peaks[0] < FLAT + 100_000 * PER_DOCUMENT, peaks
