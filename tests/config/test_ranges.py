"""Files as words that bash expands to the very files."""

import subprocess

import pytest

from web2gpt.config.ranges import in_ranges


def expanded(words: str) -> list[str]:
    command = ["bash", "-c", f"printf '%s\\0' {words}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[:-1]


@pytest.mark.parametrize(
    "files",
    [
        [f"data/shard-{number:04d}.jsonl.zst" for number in range(1024)],
        [f"CC-MAIN-2024-{number:05d}.warc.gz" for number in range(3, 90000, 16)],
        [f"part-{number:03d}.jsonl.bz2" for number in range(40)],
        [str(number) for number in range(95, 105)],
        ["a1", "a1", "a2", "a3", "a5", "a7", "a9", "a8", "b2", "b", "b", "007", "8", "9"],
        [
            "it's 1",
            "it's 2",
            "{1..3}",
            "$HOME/1",
            "line\n1",
            "line\n2",
            "-3",
            "-2",
            "é 1.x",
            "é 2.x",
        ],
        ["9" * 30, "1" + "0" * 30, "1" + "0" * 29 + "1", "٣1", "٣2"],
    ],
    ids=["shards", "every 16th", "bz2", "other widths", "gaps", "odd names", "long numbers"],
)
def test_bash_gives_the_files_back(files: list[str]) -> None:
    words = in_ranges("--x=", files)
    assert expanded(words) == [f"--x={file}" for file in files]
    assert len(words) < 250
