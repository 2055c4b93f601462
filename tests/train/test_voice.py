"""What a run says: lines to a file, a bar as well to a terminal, rank 0 alone."""

import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from web2gpt.train.voice import DESCRIPTOR, Voice


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal that a voice speaks to; gives where it is read."""
    reader, writer = pty.openpty()
    monkeypatch.setenv(DESCRIPTOR, str(writer))
    monkeypatch.setenv("TERM", "xterm")
    try:
        yield reader
    finally:
        os.close(writer)
        os.close(reader)


def all_of(reader: int) -> bytes:
    """What has been written to the terminal up to now."""
    os.set_blocking(reader, False)
    read = b""
    with suppress(BlockingIOError):
        while piece := os.read(reader, 1 << 16):
            read += piece
    return read


def test_on_a_terminal_there_is_a_bar_and_the_lines_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as reader:
        voice = Voice(silent=False, total=40)
        voice.start_bar(10)
        voice.advance(20, "loss 1.5")
        voice.say("step 20/40  loss 1.5")
        voice.close()
        shown = all_of(reader).decode()
    assert "20/40" in shown and "━" in shown
    assert "train: step 20/40  loss 1.5" in shown


def test_in_a_file_there_are_lines_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        monkeypatch.setenv(DESCRIPTOR, str(file.fileno()))
        voice = Voice(silent=False, total=40)
        voice.start_bar(0)
        voice.advance(20, "loss 1.5")
        voice.say("a line with [brackets]")
        voice.close()
    assert (tmp_path / "log").read_text() == "train: a line with [brackets]\n"


def test_other_ranks_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as reader:
        voice = Voice(silent=True, total=40)
        voice.start_bar(0)
        voice.say("from rank 1")
        voice.close()
        assert all_of(reader) == b""


def test_when_nobody_listens_any_more_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setenv(DESCRIPTOR, str(writer))
    voice = Voice(silent=False, total=40)
    os.close(reader)
    for _ in range(2):
        voice.say("into the void")
    voice.close()
    os.close(writer)
