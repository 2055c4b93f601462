"""``web2gpt train`` as a user runs it, in a folder of its own."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from tiny import Data

from web2gpt.io.atomic import read_json
from web2gpt.train.metrics import read_rows

PATIENCE = 400.0  # seconds; a busy machine starts a run slowly
PLANTED = Path(__file__).with_name("planted")
STAND_INS = Path(__file__).with_name("stand_ins")
TIMES = (
    "time", "tokens_per_second", "tflops", "mfu", "memory_gib", "peak_memory_gib", "data_seconds",
    "forward_seconds", "backward_seconds", "reduce_seconds", "optimizer_seconds",
)  # fmt: skip


@dataclass
class Run:
    """Runs in ``folder``. ``planted``: see planted/sitecustomize.py. ``stand_ins``: with the
    packages of that folder. No compiler can be found, and none is needed."""

    data: Data
    folder: Path
    planted: str = ""
    stand_ins: bool = False
    said: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True, parents=True)

    def start(
        self,
        chosen: dict[str, Any],
        *,
        also: str = "",
        largest_file: int | None = None,
        attempt: int = 1,
    ) -> subprocess.Popen[str]:
        """``also``: more planted faults. ``largest_file``: bytes at which the disk is full."""
        command = [sys.executable, "-m", "web2gpt.cli", "train", "--index", str(self.data.index)]
        command += ["--tokenizer", str(self.data.tokenizer), "--output", "train"]
        command += ["--checkpoints", "checkpoints", "--work", "work"]
        command += ["--settings", orjson.dumps(chosen).decode(), "--attempt", str(attempt)]
        environment = {
            **os.environ,
            "CXX": "/bin/false",
            "TORCH_EXTENSIONS_DIR": str(self.folder / "extensions"),
        }
        path = [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
        if faults := ",".join(filter(None, (self.planted, also))):
            path.insert(0, str(PLANTED))
            environment["WEB2GPT_PLANTED"] = faults
        if self.stand_ins:
            path.insert(0, str(STAND_INS))
            environment["WANDB_CALLS"] = str(self.folder / "wandb.jsonl")
        if path:
            environment["PYTHONPATH"] = os.pathsep.join(path)

        def limit() -> None:
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))

        pipe = subprocess.PIPE
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=pipe,
            stderr=pipe,
            text=True,
            preexec_fn=limit,  # noqa: PLW1509 - no threads here
        )

    def end(self, process: subprocess.Popen[str]) -> int:
        """Wait for the end; what it said is in ``said``."""
        out, err = process.communicate(timeout=PATIENCE)
        self.said = out + err
        return process.returncode

    def finish(self, chosen: dict[str, Any], code: int = 0, attempt: int = 1) -> str:
        """Run to the end; gives what it said."""
        assert self.end(self.start(chosen, attempt=attempt)) == code, self.said
        return self.said

    def wait_for(self, process: subprocess.Popen[str], holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "it does not come that far"
            time.sleep(0.001)

    def listens(self, process: subprocess.Popen[str]) -> bool:
        """Whether the launcher catches requests to stop."""
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = int(status.split("SigCgt:")[1].split()[0], 16)
        return bool(caught >> (signal.SIGTERM - 1) & 1)

    @property
    def identities(self) -> list[Path]:
        return sorted((self.folder / "checkpoints").glob("*"))

    def steps_done(self) -> int:
        rows = [row for path in self.identities for row in read_rows(path / "metrics.jsonl")]
        return max((row["step"] for row in rows), default=0)

    def has(self, pattern: str) -> bool:
        return any(True for _ in self.folder.glob(f"checkpoints/*/{pattern}"))

    def curve(self) -> list[dict[str, Any]]:
        """The published rows without what is a matter of time."""
        rows = read_rows(self.folder / "train" / "metrics.jsonl")
        return [{k: v for k, v in row.items() if k not in TIMES} for row in rows]

    def losses(self) -> list[float]:
        return [row["loss"] for row in self.curve() if "loss" in row]

    @property
    def done(self) -> dict[str, Any]:
        found: dict[str, Any] = read_json(self.folder / "train" / "done.json")
        return found

    @property
    def checkpoint(self) -> Path:
        """The last one."""
        return self.folder / self.done["checkpoint"]


def ranks_of(process: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True
