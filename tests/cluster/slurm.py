"""A Slurm of two nodes on this one machine: one controller, two node daemons, all on loopback.

Needs root and Debian's slurm-wlm and munge. Jobs find the configuration in /etc/slurm/slurm.conf
only (they lose SLURM_CONF), so it has to stand there: a file that is not this module's own is never
touched, and ends the attempt. All else, munge's key and socket too, lives in a folder of its own.
Only processes started here are stopped, by their numbers; only what was written here is removed.
"""

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

CONFIGURATION = Path("/etc/slurm/slurm.conf")
MARK = "# Written by web2gpt's tests/cluster; removed when they end. Folder: "
TOOLS = ("slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel", "munged")
NODES = ("n1", "n2")
CONTROLLER_PORT, NODE_PORT = 17000, 17001
LIBRARIES = "/usr/sbin:/usr/bin:/sbin:/bin"
PATIENCE = 120.0  # seconds for a daemon to answer


class NoClusterError(Exception):
    """Why no cluster can be made here."""


def require() -> None:
    """Raise ``NoClusterError`` with the reason, if this machine cannot or must not be used."""
    if os.geteuid() != 0:
        raise NoClusterError("not root")
    missing = [tool for tool in TOOLS if shutil.which(tool, path=LIBRARIES) is None]
    if missing:
        raise NoClusterError(f"not installed: {', '.join(missing)} (Debian: slurm-wlm, munge)")
    if CONFIGURATION.exists() and not CONFIGURATION.read_text().startswith(MARK):
        raise NoClusterError(f"{CONFIGURATION} is another Slurm's; it is left alone")
    if "SLURM_CONF" in os.environ:
        raise NoClusterError("SLURM_CONF names another Slurm; it is left alone")


@dataclass
class Cluster:
    """``with Cluster() as cluster:`` a running Slurm; ``cluster.ask`` calls its tools."""

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="web2gpt-slurm-")))
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __enter__(self) -> "Cluster":
        try:
            require()
            self.clear_after_a_killed_run()
            self._configure()
            self._start_munge()
            self._start("slurmctld", "slurmctld", "-D")
            for name in NODES:
                self.start_node(name)
            self.wait_for(self._is_idle, "both nodes to be idle")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        numbers = (signal.SIGTERM, signal.SIGINT)  # a second one would leave all of it running
        before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
        try:
            self._stop_all()
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _stop_all(self) -> None:
        if "slurmctld" in self.daemons:
            subprocess.run(["scancel", "--user=root"], capture_output=True, check=False)
            deadline = time.monotonic() + 20
            while self.jobs() and time.monotonic() < deadline:
                time.sleep(0.5)
        for name in reversed(list(self.daemons)):
            self.stop(name)
        kill_steps(self.folder)
        if CONFIGURATION.exists() and CONFIGURATION.read_text().startswith(f"{MARK}{self.folder}"):
            CONFIGURATION.unlink()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, *command: str) -> str:
        """Run one of Slurm's tools; gives what it printed."""
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=PATIENCE
        ).stdout

    def jobs(self, *states: str) -> list[list[str]]:
        """Jobs of the queue, as (number, state, nodes, comment); by default, those not ended."""
        asked = [f"--states={','.join(states)}"] if states else []
        try:
            said = self.ask("squeue", "--noheader", "--array", "--format=%i|%T|%N|%k", *asked)
        except subprocess.SubprocessError:
            return []
        return [line.split("|") for line in said.splitlines()]

    def state_of(self, job: str) -> str:
        """Such as RUNNING; a job that ended is remembered for an hour."""
        found = re.search(r"JobState=(\S+)", self.ask("scontrol", "show", "job", job))
        return found[1] if found else ""

    def start_node(self, name: str) -> None:
        """Start a node's daemon; what still holds the name from before is forgotten."""
        self._start(name, "slurmd", "-D", "-N", name)

    def stop(self, name: str, number: int = signal.SIGTERM) -> None:
        """Stop a daemon by its process number, and wait for its end."""
        process = self.daemons.pop(name)
        process.send_signal(number)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def wait_for(self, holds: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
        deadline = time.monotonic() + patience
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {patience:.0f} s for {what}\n{self._logs()}")
            time.sleep(0.2)

    def _is_idle(self) -> bool:
        try:
            states = self.ask("sinfo", "--noheader", "--Node", "--format=%T")
        except subprocess.SubprocessError:
            return False
        return states.split().count("idle") == 2 * len(NODES)  # each is in two partitions

    def _start(self, name: str, *command: str) -> None:
        log = (self.folder / f"{name}.out").open("ab")
        environment = {**os.environ, "PATH": f"{LIBRARIES}:{os.environ.get('PATH', '')}"}
        self.daemons[name] = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,  # an interrupt of the tests is not theirs
        )

    def _start_munge(self) -> None:
        """A munge of our own, beside the system's: own key, own socket, as the user munge."""
        home = self.folder / "munge"
        home.mkdir()
        (home / "key").write_bytes(secrets.token_bytes(128))
        (home / "key").chmod(0o400)
        for path in (home, home / "key"):
            shutil.chown(path, "munge", "munge")
        home.chmod(0o711)
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed"}
        options = [f"--{option}={home / name}" for option, name in files.items()]
        command = ["runuser", "-u", "munge", "--", "munged", "--foreground", "--force", *options]
        self._start("munge", *command, f"--log-file={home / 'log'}")
        self.wait_for((home / "socket").exists, "munge's socket")

    def _configure(self) -> None:
        self.folder.chmod(0o755)
        host = socket.gethostname().partition(".")[0]
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        text = f"""{MARK}{self.folder}
ClusterName=web2gpt
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={CONTROLLER_PORT}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool/%n
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/%n.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=20
KillWait=15
MinJobAge=3600
SchedulerParameters=bf_interval=2,sched_min_interval=200000
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{NODE_PORT}-{NODE_PORT + 1}] \
CPUs=8 RealMemory=32000 State=UNKNOWN
PartitionName=work Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP PriorityTier=1 \
PreemptMode=REQUEUE GraceTime=0
PartitionName=urgent Nodes=n[1-2] MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""
        CONFIGURATION.parent.mkdir(parents=True, exist_ok=True)
        CONFIGURATION.write_text(text)

    def clear_after_a_killed_run(self) -> None:
        """A configuration of ours whose run was killed: end its daemons, if they are still its."""
        if not CONFIGURATION.exists():
            return
        old = Path(CONFIGURATION.read_text().splitlines()[0].removeprefix(MARK))
        for file in [*old.glob("*.pid"), old / "munge/pid"]:
            pid = file.read_text().strip() if file.exists() else ""
            command = Path(f"/proc/{pid}/cmdline")
            if pid and command.exists() and command.read_text().startswith(("slurm", "munged")):
                os.kill(int(pid), signal.SIGTERM)
        kill_steps(old)
        CONFIGURATION.unlink()
        if old.name.startswith("web2gpt-slurm-"):
            shutil.rmtree(old, ignore_errors=True)

    def _logs(self) -> str:
        logs = sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out"))
        return "\n".join(f"{path.name}:\n{path.read_text()[-1500:]}" for path in logs)


def kill_steps(folder: Path) -> None:
    """Kill what job steps still run for the daemons of ``folder``: they outlive those.

    A step's daemon has its node's log open, which lies there; with it goes all that it started.
    """
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    parents = {pid: parent_of(pid) for pid in numbers}
    ending = {pid for pid in parents if pid != os.getpid() and has_open(pid, folder)}
    grown = -1
    while grown != len(ending):
        grown = len(ending)
        ending |= {pid for pid, parent in parents.items() if parent in ending}
    for pid in sorted(ending):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def has_open(pid: int, folder: Path) -> bool:
    """Whether a step's daemon has a file below ``folder`` open."""
    try:
        if not Path(f"/proc/{pid}/comm").read_text().startswith("slurmstepd"):
            return False
        files = [file.readlink() for file in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return any(file.is_relative_to(folder) for file in files)


if __name__ == "__main__":
    try:
        require()
    except NoClusterError as reason:
        raise SystemExit(f"the tests of the cluster do not run: {reason}") from None
    print("the tests of the cluster can run")
