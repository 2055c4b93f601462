"""Files appear complete or not at all."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from web2gpt.io.atomic import (
    TEMPORARY,
    atomic_write,
    publish,
    read_json,
    temporary_name,
    write_bytes,
    write_json,
    write_text,
)

REWRITE_FOREVER = """
import itertools, sys
from pathlib import Path
from web2gpt.io.atomic import write_bytes
path = Path(sys.argv[1])
for number in itertools.count():
    write_bytes(path, bytes([number % 251]) * (1 << 18))
"""


def test_the_file_appears_only_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    with atomic_write(path) as file:
        file.write(b"whole")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_never_share_a_temporary_name(tmp_path: Path) -> None:
    names = {temporary_name(tmp_path / "file") for _ in range(100)}
    assert len(names) == 100
    assert all(name.parent == tmp_path and name.name.startswith(TEMPORARY) for name in names)


def test_publish_makes_the_folder_and_leaves_no_source(tmp_path: Path) -> None:
    source, target = tmp_path / "draft", tmp_path / "a" / "b" / "file"
    source.write_bytes(b"content")
    publish(source, target)
    assert target.read_bytes() == b"content"
    assert not source.exists()


def test_json_and_text_come_back_as_they_went(tmp_path: Path) -> None:
    value = {"b": [1, 2.5, None], "a": {"ä": "✓"}}
    write_json(tmp_path / "x.json", value)
    assert read_json(tmp_path / "x.json") == value
    assert list(read_json(tmp_path / "x.json")) == ["b", "a"]
    write_text(tmp_path / "x.txt", "ä✓\n")
    assert (tmp_path / "x.txt").read_bytes() == "ä✓\n".encode()


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for pause in (0.0, 0.004, 0.013):
        writer = subprocess.Popen([sys.executable, "-c", REWRITE_FOREVER, str(path)])
        try:
            while not path.exists():
                time.sleep(0.01)
            time.sleep(pause)
        finally:
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
        content = path.read_bytes()
        assert len(content) == 1 << 18
        assert len(set(content)) == 1
        path.unlink()
