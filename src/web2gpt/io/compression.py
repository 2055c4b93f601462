"""Open a file by its name's ending, decompressing as a stream in bounded memory.

A stream that breaks off raises ``EOFError`` for every kind; zstandard's own reader would end as
if nothing were missing, hence the small one here.
"""

import bz2
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import IO, cast

import zstandard

CHUNK = 1 << 12  # compressed bytes at a time: a bomb unfolds into 128 MiB of it at most
MAX_WINDOW = 1 << 31  # Reddit's dumps use windows of 2 GiB
BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
"""What reading a damaged file can raise."""

PACKED = (".gz", ".bz2", ".xz", ".zst")
JSON_LINES = (".jsonl", ".json", ".ndjson")


def is_json_lines(path: Path) -> bool:
    """Whether a file holds JSON lines, by its name: compressed or not."""
    name = path.with_suffix("") if path.suffix in PACKED else path
    return name.suffix in JSON_LINES


def open_compressed(path: Path) -> IO[bytes]:
    """Open ``path`` for reading: .gz, .bz2, .xz and .zst are decompressed, all else is plain."""
    match path.suffix:
        case ".gz":
            return cast(IO[bytes], gzip.open(path, "rb"))
        case ".bz2":
            return cast(IO[bytes], bz2.open(path, "rb"))
        case ".xz":
            return cast(IO[bytes], lzma.open(path, "rb"))
        case ".zst":
            return io.BufferedReader(_ZstdStream(path), 1 << 20)
        case _:
            return path.open("rb")


class _ZstdStream(io.RawIOBase):
    """All frames of a zstd file, one after another."""

    def __init__(self, path: Path):
        self._file = path.open("rb")
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        self._frame = self._decompressor.decompressobj()
        self._started = False  # whether the frame at hand has had any input
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # BufferedReader's own
        while not self._ready:
            if not self._advance():
                return 0
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _advance(self) -> bool:
        """Decompress some more; False at the end of the last frame."""
        data = self._frame.unused_data if self._frame.eof else b""
        if self._frame.eof:
            self._frame, self._started = self._decompressor.decompressobj(), False
        data = data or self._file.read(CHUNK)
        if not data:
            if self._started:
                raise EOFError("the zstd stream breaks off inside a frame")
            return False
        self._started = True
        self._ready = memoryview(self._frame.decompress(data))
        return True
