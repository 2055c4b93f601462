"""Shards read in blocks of whole lines, with the compressed frame where a block is just that.

Our own shards are rows of zstd frames of whole lines (``io/shards``); a frame whose documents all
go into the corpus can be copied without being compressed again. Memory is bounded by ``LARGEST``:
of anything else than such frames, only the lines come.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard

from web2gpt.io.compression import MAX_WINDOW, open_compressed

READ = 1 << 15  # compressed bytes at a time
LARGEST = 32 << 20  # bytes of lines in a block, but for a single line that is longer


@dataclass(frozen=True)
class Block:
    """Whole lines; ``frame`` is the zstd frame that holds just them, and says so in its head."""

    lines: bytes
    frame: bytes | None = None


def read_blocks(path: Path) -> Iterator[Block]:
    """All lines of a shard. Raises what ``io.compression.BROKEN`` lists if it is damaged."""
    if path.suffix == ".zst":
        yield from _read_frames(path)
        return
    with open_compressed(path) as file:
        while lines := file.readlines(LARGEST):
            yield Block(b"".join(lines))


def _read_frames(path: Path) -> Iterator[Block]:
    """The blocks of a zstd file: frame by frame, or by parts of frames that are too large."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    rest = b""  # the beginning of a line that goes on in the next block
    with path.open("rb") as file:
        data = file.read(READ)
        while data:
            frame = decompressor.decompressobj()
            taken, lines = [data], [rest, frame.decompress(data)]
            is_whole = not rest
            while not frame.eof:
                if sum(map(len, lines)) > LARGEST:
                    block, rest = _cut(lines)
                    yield block
                    taken, lines, is_whole = [], [rest], False
                data = file.read(READ)
                if not data:
                    raise EOFError("the zstd stream breaks off inside a frame")
                taken += [data] if is_whole else []
                lines.append(frame.decompress(data))
            block, rest = _cut(lines)
            if is_whole and not rest:
                read = b"".join(taken)
                block = _with_frame(block, read[: len(read) - len(frame.unused_data)])
            yield block
            data = frame.unused_data or file.read(READ)
    if rest:
        yield Block(rest)


def _cut(pieces: list[bytes]) -> tuple[Block, bytes]:
    """The whole lines, and what is left of the last one."""
    content = b"".join(pieces)
    end = content.rfind(b"\n") + 1
    return Block(content[:end]), content[end:]


def _with_frame(block: Block, frame: bytes) -> Block:
    """The block with its frame, if that tells its size, as readers of the corpus want it."""
    size = zstandard.get_frame_parameters(frame).content_size
    return Block(block.lines, frame) if size == len(block.lines) else block
