"""One owner at a time, whatever dies, sleeps or contends."""

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import web2gpt.io.lease as module
from web2gpt.errors import LeaseError
from web2gpt.io.lease import Lease, Owner
from web2gpt.io.work import WorkFolder

HOLD = """
import sys, time
from pathlib import Path
from web2gpt.io.lease import Lease
with Lease(Path(sys.argv[1])):
    print("inside", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL", 0.01)
    monkeypatch.setattr(module, "GRACE", 0.3)


def held_by(folder: Path, **changes: object) -> Owner:
    """Put a lease of another owner into the folder."""
    folder.mkdir(exist_ok=True)
    owner = replace(Owner.this_process(), **changes)
    (folder / "lease.json").write_text(json.dumps(asdict(owner)))
    return owner


def age(folder: Path, seconds: float) -> None:
    now = time.time()
    os.utime(folder / "lease.json", (now - seconds, now - seconds))


def holder(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "lease.json").read_text())
    return found


def rounds(folder: Path, worker: int, count: int) -> None:
    """Enter and leave the lease ``count`` times; note any time that another is inside too."""
    module.POLL = 0.001
    for _ in range(count):
        with Lease(folder):
            try:
                os.close(os.open(folder / "inside", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                (folder / f"clash-{worker}").touch()
            time.sleep(0.001)
            (folder / "inside").unlink(missing_ok=True)
    (folder / f"done-{worker}").touch()


def die_inside(folder: Path) -> None:
    lease = Lease(folder)
    lease.__enter__()
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_free_folder_is_held_at_once_and_free_again(tmp_path: Path) -> None:
    with Lease(tmp_path / "work") as lease:
        assert lease.is_held()
        lease.check()
        assert holder(tmp_path / "work")["pid"] == os.getpid()
    assert list((tmp_path / "work").iterdir()) == []


def test_an_error_inside_frees_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Lease(tmp_path):
        raise ZeroDivisionError
    with Lease(tmp_path):
        pass


def test_many_processes_are_inside_one_at_a_time(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=rounds, args=(tmp_path, n, 10)) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(list(tmp_path.glob("done-*"))) == 6
    assert not list(tmp_path.glob("clash-*"))
    assert not [path for path in tmp_path.iterdir() if Lease.owns(path.name)]


def test_many_processes_that_find_a_dead_owner_enter_one_at_a_time(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for _ in range(5):
        dead = context.Process(target=die_inside, args=(tmp_path,))
        dead.start()
        dead.join()
        workers = [context.Process(target=rounds, args=(tmp_path, n, 1)) for n in range(6)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(list(tmp_path.glob("done-*"))) == 6
        for path in tmp_path.glob("done-*"):
            path.unlink()
    assert not list(tmp_path.glob("clash-*"))


def test_the_lease_of_a_killed_process_of_this_host_is_taken_over_at_once(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "inside\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with Lease(tmp_path, timeout=1e9) as lease:  # waiting for the timeout would take for ever
        assert lease.is_held()


def test_a_zombie_counts_as_dead(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not module.started(process.pid)
    process.wait()


def test_a_reused_process_number_counts_as_dead() -> None:
    me = Owner.this_process()
    assert not me.is_known_dead()
    assert replace(me, started="1").is_known_dead()


@pytest.mark.parametrize("where", ["host", "boot"])
def test_of_another_host_or_boot_nothing_is_known(where: str) -> None:
    assert not replace(Owner.this_process(), pid=1 << 30, **{where: "other"}).is_known_dead()


def test_a_silent_owner_on_another_host_is_taken_over_after_the_timeout_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held_by(tmp_path, host="elsewhere", token="theirs")
    age(tmp_path, 50)
    entered = threading.Event()

    def contend() -> None:
        with Lease(tmp_path, timeout=60):
            entered.set()

    thread = threading.Thread(target=contend)
    thread.start()
    assert not entered.wait(0.2)
    age(tmp_path, 61)
    assert entered.wait(30)
    thread.join()
    assert "waiting for elsewhere" in capsys.readouterr().err


def test_a_beating_owner_on_another_host_keeps_its_lease(tmp_path: Path) -> None:
    with Lease(tmp_path, heartbeat=0.02) as lease:
        age(tmp_path, 1000)
        deadline = time.monotonic() + 30
        while lease._age() > 10 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert lease._age() < 10


def test_a_clock_that_differs_between_hosts_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_by(tmp_path, host="elsewhere")
    monkeypatch.setattr(time, "time", lambda: 1e12)
    assert not Lease(tmp_path)._may_take_over(module._read(tmp_path / "lease.json"))


def test_an_owner_that_was_taken_over_neither_publishes_nor_frees_the_lease(
    tmp_path: Path,
) -> None:
    work, target = tmp_path / "work", tmp_path / "result"
    with WorkFolder(work, {"stage": "x"}) as folder:
        (work / "draft").write_text("mine")
        held_by(work, host="elsewhere", token="theirs")
        with pytest.raises(LeaseError, match="took over"):
            folder.publish({work / "draft": target})
    assert not target.exists()
    assert holder(work)["token"] == "theirs"


def test_the_heartbeat_notices_the_loss(tmp_path: Path) -> None:
    with Lease(tmp_path, heartbeat=0.01) as lease:
        held_by(tmp_path, token="theirs")
        lease._thread.join(30)
        assert not lease._thread.is_alive()
        (tmp_path / "lease.json").write_text(json.dumps(asdict(lease._owner)))
        with pytest.raises(LeaseError):  # once lost, lost for good
            lease.check()


def test_a_deleted_lease_is_a_lost_one(tmp_path: Path) -> None:
    with Lease(tmp_path) as lease:
        (tmp_path / "lease.json").unlink()
        with pytest.raises(LeaseError):
            lease.check()


def test_a_live_lease_taken_away_by_a_late_contender_is_put_back(tmp_path: Path) -> None:
    """A second contender saw the dead owner too, but moves only when the first is inside."""
    dead = held_by(tmp_path, started="1", token="dead")
    second = Lease(tmp_path)
    with Lease(tmp_path) as first:
        second._remove(dead)
        assert first.is_held()
        first.check()
    assert list(tmp_path.iterdir()) == []


def test_the_owner_bears_that_its_lease_is_away_for_a_moment(tmp_path: Path) -> None:
    with Lease(tmp_path, heartbeat=0.01) as lease:
        (tmp_path / "lease.json").rename(tmp_path / ".taken-x")
        putting_back = threading.Timer(
            0.1, (tmp_path / ".taken-x").rename, [tmp_path / "lease.json"]
        )
        putting_back.start()
        lease.check()
        putting_back.join()
        lease.check()


@pytest.mark.parametrize("garbage", [b"", b"{", b"[]", b"{}", b"\0" * 50, b'"x"', b'{"a": 1}'])
def test_a_lease_garbled_by_a_crash_is_taken_over_after_the_timeout(
    tmp_path: Path, garbage: bytes
) -> None:
    (tmp_path / "lease.json").write_bytes(garbage)
    owner = module._read(tmp_path / "lease.json")
    assert owner is not None
    assert not Lease(tmp_path)._may_take_over(owner)
    age(tmp_path, 61)
    with Lease(tmp_path) as lease:
        assert lease.is_held()


def test_this_process_names_its_host() -> None:
    assert Owner.this_process().host == socket.gethostname()
    assert Owner.this_process().token != Owner.this_process().token
