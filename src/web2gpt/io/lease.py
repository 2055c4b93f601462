"""An exclusive lease on a work folder that works between hosts.

The lease is a file created with O_EXCL. Its owner touches it every few seconds; whoever finds it
held waits, and takes over once the owner is known dead (same host and boot, no such process) or
its heartbeat has been silent for ``TIMEOUT``. Ages are judged by the file system's own clock, by
comparing the lease's date with that of a file just touched beside it, so hosts need not agree on
the time. An owner that was taken over (a suspended machine, say) notices at its next heartbeat or
publication and stops with ``LeaseError`` instead of writing.
"""

import os
import secrets
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import orjson

from web2gpt.errors import LeaseError
from web2gpt.io.processes import started

HEARTBEAT = 5.0  # seconds between touches
TIMEOUT = 60.0  # seconds of silence after which an owner on another host counts as dead
POLL = 0.5  # seconds between looks at a lease that another process holds
GRACE = 1.0  # seconds in which a lease that a contender took away by mistake is put back


@dataclass(frozen=True)
class Owner:
    """Who holds a lease; ``token`` is new for each acquisition."""

    token: str
    host: str
    boot: str
    pid: int
    started: str

    @classmethod
    def this_process(cls) -> Self:
        return cls(
            secrets.token_hex(8),
            socket.gethostname(),
            _boot_id(),
            os.getpid(),
            started(os.getpid()),
        )

    def is_known_dead(self) -> bool:
        """True only if this is our host and boot, and that very process is gone."""
        if (self.host, self.boot) != (socket.gethostname(), _boot_id()):
            return False
        return not self.started or started(self.pid) != self.started


class Lease:
    """``with Lease(folder):`` holds ``folder/lease.json`` while the block runs."""

    def __init__(self, folder: Path, *, heartbeat: float = HEARTBEAT, timeout: float = TIMEOUT):
        self.path = folder / "lease.json"
        self._heartbeat, self._timeout = heartbeat, timeout
        self._owner = Owner.this_process()
        self._stop = threading.Event()
        self._lost = False
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        told = False
        while not self._create():
            holder = _read(self.path)
            if holder is None or not self._may_take_over(holder):
                if holder is not None and not told:
                    print(
                        f"waiting for {holder.host}:{holder.pid}, which holds {self.path}",
                        file=sys.stderr,
                        flush=True,
                    )
                    told = True
                time.sleep(POLL)
            else:
                self._remove(holder)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        self._stop.set()
        self._thread.join()
        if self.is_held():
            self.path.unlink(missing_ok=True)

    def is_held(self) -> bool:
        """Whether the lease is still this process's own."""
        until = time.monotonic() + GRACE
        while (holder := _read(self.path)) is None and time.monotonic() < until:
            time.sleep(GRACE / 50)
        return not self._lost and holder is not None and holder.token == self._owner.token

    def check(self) -> None:
        """Raise ``LeaseError`` if another process has taken the folder over."""
        if not self.is_held():
            raise LeaseError(
                f"{self.path}: another process took over this work folder while this one was "
                "silent; this one stops so that nothing is written twice. Nothing needs doing."
            )

    @staticmethod
    def owns(name: str) -> bool:
        """Whether a file of this name in the folder belongs to a lease, this or a waiting one."""
        return name == "lease.json" or name.startswith((".lease-", ".probe-", ".taken-"))

    def _create(self) -> bool:
        # A link, not a plain O_EXCL create: the file is never seen empty.
        draft = self.path.with_name(f".lease-{self._owner.token}")
        draft.write_bytes(orjson.dumps(asdict(self._owner)))
        try:
            os.link(draft, self.path)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        return True

    def _may_take_over(self, holder: Owner) -> bool:
        return holder.is_known_dead() or self._age() > self._timeout

    def _age(self) -> float:
        """Seconds since the holder's last heartbeat, by the file system's clock."""
        probe = self.path.with_name(f".probe-{self._owner.token}")
        probe.touch()
        try:
            return probe.stat().st_mtime - self.path.stat().st_mtime
        except FileNotFoundError:
            return 0.0
        finally:
            probe.unlink(missing_ok=True)

    def _remove(self, holder: Owner) -> None:
        """Take the dead ``holder``'s lease away; if a new one stands there by now, put it back."""
        taken = self.path.with_name(f".taken-{self._owner.token}")
        try:
            os.rename(self.path, taken)
        except FileNotFoundError:
            return
        found = _read(taken)
        if found is not None and found.token != holder.token:
            with suppress(FileExistsError):  # that owner will notice that it lost the lease
                os.link(taken, self.path)
        taken.unlink()

    def _beat(self) -> None:
        while not self._stop.wait(self._heartbeat):
            try:
                if not self.is_held():
                    self._lost = True
                    return
                os.utime(self.path)
            except OSError:  # a network file system's hiccup; the next look tells
                continue


def _read(path: Path) -> Owner | None:
    """Who holds the lease; a file that a crash of the machine garbled belongs to nobody known."""
    try:
        return Owner(**orjson.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (TypeError, orjson.JSONDecodeError):
        return Owner(token="", host="", boot="", pid=0, started="")


def _boot_id() -> str:
    """This boot of the kernel and this process-id namespace: where a pid means what it says."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
