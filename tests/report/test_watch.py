"""What watch shows of a run is what its files say at that moment."""

import io
import json
import math
import os
import time
from pathlib import Path

import pytest
from rich.console import Console
from tests.report.conftest import RunFolders
from typer.testing import CliRunner

from web2gpt.cli import app
from web2gpt.io.lease import Lease
from web2gpt.report.progress import JobGroup, look
from web2gpt.report.terminal import BRAILLE, curve_lines, duration, show
from web2gpt.report.training import Curve


def job(folder: Path, *, done: bool) -> Path:
    """A work folder of a job that has begun."""
    folder.mkdir(parents=True)
    (folder / "job").write_text("x")
    if done:
        (folder / "published.json").write_text("[]")
    return folder


def group(folders: RunFolders, name: str) -> JobGroup:
    return next(g for g in look(folders.data, folders.run).groups if g.name == name)


@pytest.fixture
def begun(folders: RunFolders) -> RunFolders:
    """Extract: one job done, one under way, one not begun; a shard's list says that there are 3."""
    (folders.data / "urls").mkdir()
    for number in range(3):
        (folders.data / "urls" / f"urls-000{number}.tsv").touch()
    job(folders.data / "work" / "extract" / "urls-0000", done=True)
    job(folders.data / "work" / "extract" / "urls-0001", done=False)
    log = folders.data / "logs" / "extract" / "urls-0001.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "a warning\nextract urls-0001: 100 pages, 10.0 a second\n"
        "extract urls-0001: 1,250 pages, 12.5 a second\nanother: line\n"
    )
    return folders


def test_jobs_are_done_running_or_stopped(begun: RunFolders) -> None:
    with Lease(begun.data / "work" / "extract" / "urls-0001"):
        running = group(begun, "extract")
    stopped = group(begun, "extract")
    assert (running.jobs, running.done, running.running, running.state) == (3, 1, 1, "running")
    assert (running.records, running.unit, running.rate) == (1250, "pages", 12.5)
    assert (stopped.running, stopped.state, stopped.rate) == (0, "stopped", 0.0)


def test_a_lease_that_no_heartbeat_keeps_alive_is_no_job(begun: RunFolders) -> None:
    lease = begun.data / "work" / "extract" / "urls-0001" / "lease.json"
    lease.write_text("{}")
    os.utime(lease, (1, 1))
    assert group(begun, "extract").running == 0


def test_time_left_follows_from_rate_and_what_is_to_be_read(begun: RunFolders) -> None:
    stats = json.loads((begun.data / "stats" / "urls.json").read_text())
    (begun.data / "stats" / "fetch.json").write_text(json.dumps(stats | {"out": 5000}))
    with Lease(begun.data / "work" / "extract" / "urls-0001"):
        found = group(begun, "extract")
    assert found.expected == 5000
    assert found.seconds_left == (5000 - 1250) / 12.5


def test_the_trainings_time_left_is_that_of_its_last_steps(folders: RunFolders) -> None:
    rows = [{"step": n, "loss": 3.0, "time": 100.0 + 2 * n, "tokens_per_second": 5.0}
            for n in range(1, 101)]  # fmt: skip
    rows[50]["time"] = 0.0  # a clock that was set
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folders.run / "train" / "metrics.jsonl").write_text(text)
    with Lease(job(folders.run / "work" / "train", done=False)):
        state = look(folders.data, folders.run)
        shown = CliRunner().invoke(app, arguments(folders)).output
    assert (state.steps, state.steps_left_seconds) == (300, 400.0)
    assert "step 100 of 300, loss 3.0000, 5 tokens/s, 1 restarts" in shown
    assert "6:40" in shown


def test_a_training_under_way_says_itself_how_long_it_is(folders: RunFolders) -> None:
    work = job(folders.run / "work" / "train", done=False)
    (work / "run.json").write_text(json.dumps({"stage": '{"train": {"steps": 7}}'}))
    assert look(folders.data, folders.run).steps == 7
    for damaged in ("{", "[]", '{"stage": 3}', '{"stage": "{}}"}'):
        (work / "run.json").write_text(damaged)
        assert look(folders.data, folders.run).steps == 300, "by config.yaml"


def arguments(folders: RunFolders, *more: str) -> list[str]:
    return ["watch", "--data", str(folders.data), "--run", str(folders.run), *more]


def test_without_a_terminal_it_looks_once(begun: RunFolders) -> None:
    start = time.monotonic()
    result = CliRunner().invoke(app, arguments(begun, "--interval", "1000"))
    assert time.monotonic() - start < 100
    assert result.exit_code == 0
    assert "\x1b" not in result.output
    assert "extract" in result.output
    assert "1/3" in result.output
    assert any(BRAILLE < ord(character) < BRAILLE + 256 for character in result.output)


def test_it_tells_the_same_as_json(begun: RunFolders) -> None:
    told = json.loads(CliRunner().invoke(app, arguments(begun, "--json")).output)
    assert told["stages"][0]["name"] == "extract"
    assert told["stages"][0]["state"] == "stopped"
    assert told["training"]["step"] == 300
    assert told["training"]["valid_loss"] == 3.5


def test_nothing_yet_is_said(tmp_path: Path) -> None:
    folder = str(tmp_path)
    result = CliRunner().invoke(app, ["watch", "--data", folder, "--run", folder])
    assert "nothing has begun yet" in result.output


def test_damaged_files_stop_nobody_from_looking(begun: RunFolders) -> None:
    for path in (begun.data / "stats" / "clean.json", begun.run / "config.yaml",
                 begun.run / "train" / "metrics.jsonl"):  # fmt: skip
        path.write_bytes(b"\xff{")
    state = look(begun.data, begun.run)
    assert state.steps is None
    assert not state.training


def test_a_falling_curve_falls(tmp_path: Path) -> None:
    curve = Curve(tuple(range(100)), tuple(8 - n / 20 for n in range(100)))
    lines = list(curve_lines(curve, width=20, height=5))
    assert [line[:10].strip(" ┤└") for line in lines] == ["8", "", "", "", "3.05", "", ""]
    firsts = [next((n for n, c in enumerate(line[10:]) if ord(c) > BRAILLE), None)
              for line in lines[:5]]  # fmt: skip
    assert firsts == sorted(firsts)


@pytest.mark.parametrize("values", [(1.0,), (math.nan,), (), (math.inf, 2.0), (0.0, 0.0)])
def test_any_curve_can_be_shown(values: tuple[float, ...]) -> None:
    lines = list(curve_lines(Curve(tuple(range(len(values))), values)))
    assert len(lines) in (0, 12)


def test_durations() -> None:
    assert [duration(s) for s in (0.4, 59, 61, 3600, 360_005)] == [
        "0:00", "0:59", "1:01", "1:00:00", "100:00:05",
    ]  # fmt: skip


def test_a_small_terminal_shows_what_is_not_done(begun: RunFolders) -> None:
    job(begun.data / "work" / "urls", done=True)
    state = look(begun.data, begun.run)
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(show(state, lines=12))
    told = console.export_text()
    assert "done: urls" in told
    assert "stopped" in told
    assert "1/1" not in told


def test_the_configuration_says_what_to_watch(begun: RunFolders, monkeypatch) -> None:
    home = begun.data.parents[1]
    (home / "results").mkdir()
    (begun.data.parent).rename(home / "results" / "data")
    (begun.run.parent).rename(home / "results" / "runs")
    (home / "mine.yaml").write_text(
        "data: {name: corpus}\nrun: {name: first}\n"
        "input: [{name: a, kind: jsonl, paths: [a.jsonl]}]\n"
    )
    monkeypatch.chdir(home)
    result = CliRunner().invoke(app, ["watch", "--config", "mine.yaml"])
    assert "data corpus, run first" in result.output
    assert "1/3" in result.output
    (home / "overlay.yaml").write_text("data: {name: corpus}\nrun: {name: first}\n")
    assert CliRunner().invoke(app, ["watch", "--config", "overlay.yaml"]).output == result.output
    (home / "wrong.yaml").write_text("run: {nam: first}\n")
    told = CliRunner().invoke(app, ["watch", "--config", "wrong.yaml"]).exception
    assert "run.nam: no such setting; did you mean name?" in str(told)
