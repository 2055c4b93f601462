"""Files that appear complete or not at all.

Invariant: a path under ``results/`` either does not exist or holds the whole file. Everything is
written under a temporary name in the same folder, flushed to disk, and renamed into place.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson

TEMPORARY = ".tmp-"


def temporary_name(path: Path) -> Path:
    """A name beside ``path`` that no reader takes for a result and no other writer chooses."""
    return path.with_name(f"{TEMPORARY}{secrets.token_hex(4)}-{path.name}")


def sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(source: Path, target: Path) -> None:
    """Move the finished file ``source`` to ``target`` on the same file system, durably."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(source, target)
    sync_folder(target.parent)


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file for writing that becomes ``path`` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    try:
        with temporary.open("wb") as file:
            yield file
        publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a small file atomically."""
    with atomic_write(path) as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """Write a small UTF-8 file atomically."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as indented JSON, atomically. Keys keep their order."""
    write_bytes(path, orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read_json(path: Path) -> Any:
    """Read a JSON file that a stage of ours wrote."""
    return orjson.loads(path.read_bytes())


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to fill that becomes ``path`` when the block ends without an error. ``path`` must
    not be there; files are flushed to disk before the rename."""
    draft = temporary_name(path)
    draft.mkdir(parents=True)
    try:
        yield draft
        for file in sorted(draft.rglob("*")):
            if file.is_file():
                with file.open("rb") as opened:
                    os.fsync(opened.fileno())
        sync_folder(draft)
        os.rename(draft, path)
        sync_folder(path.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
