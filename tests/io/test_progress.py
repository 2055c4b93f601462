"""Progress goes to standard error: lines in a log, a bar on a terminal."""

import os
import pty
import subprocess
import sys

import pytest

import web2gpt.io.progress as module
from web2gpt.io.progress import ProgressLine


def test_a_log_gets_a_line_every_so_often(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 4.0, 12.0, 12.0, 15.0, 23.0, 23.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    with ProgressLine("extract x", unit="pages", total=4000) as progress:
        progress.advance(1000)
        progress.advance(200, note="slow")
        progress.advance(100)
        progress.advance()
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        "extract x: 1,200 of 4,000 pages, 100.0 a second, slow",
        "extract x: 1,301 of 4,000 pages, 56.6 a second, slow",
    ]


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLine("extract") as progress:
        progress.advance()
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_on_standard_error() -> None:
    ours, theirs = pty.openpty()
    code = (
        "from web2gpt.io.progress import ProgressLine\n"
        "with ProgressLine('extract', total=3) as progress: progress.advance(2, note='half')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        stderr=theirs,
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    shown = os.read(ours, 1 << 16)
    os.close(ours)
    assert b"extract" in shown
    assert b"2/3" in shown
    assert done.stdout == b""
