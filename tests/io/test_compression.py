"""Every kind of compression streams, and a break-off is never taken for an end."""

import bz2
import gzip
import lzma
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from web2gpt.io.compression import BROKEN, open_compressed

TEXT = b"".join(b"line %d of some text\n" % number for number in range(20_000))
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
kinds = pytest.mark.parametrize("ending", PACKERS)

READ_ALL = """
import resource, sys
from pathlib import Path
from web2gpt.io.compression import open_compressed
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
total = 0
with open_compressed(Path(sys.argv[1])) as file:
    while chunk := file.read(1 << 20):
        total += len(chunk)
print(total, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def packed(folder: Path, ending: str, content: bytes) -> Path:
    path = folder / f"x{ending}"
    path.write_bytes(content)
    return path


def read(path: Path) -> bytes:
    with open_compressed(path) as file:
        return file.read()


@kinds
def test_what_other_software_packed_is_unpacked(tmp_path: Path, ending: str) -> None:
    assert read(packed(tmp_path, ending, PACKERS[ending](TEXT))) == TEXT


@kinds
def test_members_one_after_another_are_one_stream(tmp_path: Path, ending: str) -> None:
    pieces = [TEXT[:100], b"", TEXT[100:5000], TEXT[5000:]]
    joined = b"".join(PACKERS[ending](piece) for piece in pieces)
    assert read(packed(tmp_path, ending, joined)) == TEXT


@kinds
def test_an_empty_member_is_empty(tmp_path: Path, ending: str) -> None:
    assert read(packed(tmp_path, ending, PACKERS[ending](b""))) == b""


def test_other_endings_are_plain(tmp_path: Path) -> None:
    assert read(packed(tmp_path, ".jsonl", TEXT)) == TEXT


@kinds
def test_every_cut_is_noticed(tmp_path: Path, ending: str) -> None:
    whole = PACKERS[ending](TEXT)
    for length in {1, 2, 5, 9, 17, len(whole) // 3, len(whole) // 2, len(whole) - 1}:
        with pytest.raises(BROKEN):
            read(packed(tmp_path, ending, whole[:length]))


@kinds
def test_a_cut_second_member_is_noticed(tmp_path: Path, ending: str) -> None:
    whole = PACKERS[ending](TEXT)
    with pytest.raises(BROKEN):
        read(packed(tmp_path, ending, whole + whole[: len(whole) // 2]))


@kinds
def test_garbage_is_noticed(tmp_path: Path, ending: str) -> None:
    with pytest.raises(BROKEN):
        read(packed(tmp_path, ending, b"<html>Not Found</html>" * 100))


@kinds
def test_damage_in_the_middle_raises_only_what_is_declared(tmp_path: Path, ending: str) -> None:
    whole = bytearray(PACKERS[ending](TEXT))
    noticed = 0
    for place in range(0, len(whole), max(1, len(whole) // 20)):
        damaged = whole.copy()
        damaged[place] ^= 0x55
        try:
            read(packed(tmp_path, ending, bytes(damaged)))
        except BROKEN:
            noticed += 1
    assert noticed > 5


def test_skippable_frames_are_skipped(tmp_path: Path) -> None:
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"  # as pzstd writes them
    frame = zstandard.compress(TEXT)
    assert read(packed(tmp_path, ".zst", skippable + frame + skippable + frame)) == TEXT * 2


def test_a_bomb_unfolds_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zst"
    with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as stream:
        for _ in range(512):
            stream.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 17
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, str(path)], capture_output=True, text=True, check=True
    )
    total, growth = map(int, done.stdout.split())
    assert total == 512 << 20
    assert growth * 1024 < 256 << 20


def test_closing_closes_the_file(tmp_path: Path) -> None:
    path = packed(tmp_path, ".zst", zstandard.compress(TEXT))
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    for _ in range(min(limit, 2000) + 10):
        with open_compressed(path) as file:
            file.read(1)
