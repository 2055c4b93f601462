"""The command train, by its processes: it ends the same whatever happens to them on the way."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from safetensors.numpy import load_file
from tiny import STEPS, Data, settings

from web2gpt.io.atomic import read_json
from web2gpt.train.metrics import read_rows

PATIENCE = 120.0


class Run:
    """``web2gpt train`` in a folder of its own. No compiler can be found, and none is needed."""

    def __init__(self, data: Data, folder: Path):
        self.data, self.folder = data, folder
        folder.mkdir(exist_ok=True)

    def start(self, chosen: dict[str, Any]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "web2gpt.cli", "train", "--index", str(self.data.index)]
        command += ["--tokenizer", str(self.data.tokenizer), "--output", "train"]
        command += ["--checkpoints", "checkpoints", "--work", "work"]
        command += ["--settings", orjson.dumps(chosen).decode()]
        environment = {
            **os.environ,
            "CXX": "/bin/false",
            "TORCH_EXTENSIONS_DIR": str(self.folder / "extensions"),
        }
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=pipe, stderr=pipe, text=True
        )

    def finish(self, chosen: dict[str, Any]) -> str:
        """Run to the end; gives what it said."""
        process = self.start(chosen)
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        return out + err

    def wait_for(self, process: subprocess.Popen[str], holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "it does not come that far"
            time.sleep(0.001)

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


TIMES = ("time", "tokens_per_second")


@pytest.fixture(scope="module")
def unbroken(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(data, tmp_path_factory.mktemp("unbroken"))
    run.finish(settings())
    return run


def ranks_of(process: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_it_trains_without_a_compiler(unbroken: Run) -> None:
    rows = unbroken.curve()
    losses = [row["loss"] for row in rows if "loss" in row]
    assert len(losses) == STEPS and losses[-1] < losses[0]
    assert [row["step"] for row in rows if "valid_loss" in row] == [6, 12]
    done = read_json(unbroken.folder / "train" / "done.json")
    assert (unbroken.folder / done["checkpoint"] / "index.json").exists()
    assert list((unbroken.folder / "train" / "tensorboard").iterdir())
    assert not (unbroken.folder / "extensions").exists(), "something was compiled"


def test_whatever_kills_it_it_ends_as_if_nothing_had_happened(
    data: Data, unbroken: Run, tmp_path: Path
) -> None:
    run = Run(data, tmp_path)

    process = run.start(settings())
    run.wait_for(process, lambda: run.steps_done() >= 1)
    process.terminate()
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 75 and "run again to carry on" in err

    process = run.start(settings())
    run.wait_for(process, lambda: len(ranks_of(process)) == 2)
    os.kill(ranks_of(process)[1], signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and "rank 1 was ended by SIGKILL" in err

    process = run.start(settings())
    run.wait_for(process, lambda: run.has(".tmp-step_00000008"))  # in the middle of a save
    ranks = ranks_of(process)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + PATIENCE
    while not all(is_gone(pid) for pid in ranks):
        assert time.monotonic() < deadline, "ranks outlive the launcher"
        time.sleep(0.01)

    assert "carries on from" in run.finish(settings())
    assert run.curve() == unbroken.curve()
    assert not run.has(".tmp-*")
    for name in ("weight/wte.weight", "exp_avg/wte.weight"):
        assert tensor(run, name) == tensor(unbroken, name)


def tensor(run: Run, key: str) -> list[Any]:
    done = read_json(run.folder / "train" / "done.json")
    path = run.folder / done["checkpoint"] / "tensor_01_pipeline_00.safetensors"
    values: list[Any] = load_file(path)[key].tolist()
    return values


def test_another_layout_and_another_interval_carry_on_but_another_seed_starts_anew(
    data: Data, unbroken: Run, tmp_path: Path
) -> None:
    run = Run(data, tmp_path / "other")
    shutil.copytree(unbroken.folder / "checkpoints", run.folder / "checkpoints")
    shutil.rmtree(run.identities[0] / f"step_{STEPS:08d}")
    single = settings(eval_interval=4, micro_batch_size=4) | {"parallel": {"tensor": 1}}
    said = run.finish(single)
    assert "step_00000008" in said and len(run.identities) == 1
    before = [row["loss"] for row in unbroken.curve() if "loss" in row]
    after = [row["loss"] for row in run.curve() if "loss" in row]
    assert after[:8] == before[:8]
    assert after == pytest.approx(before, rel=1e-6)

    said = run.finish(single | {"run": {"seed": 5}})
    assert "starts at step 0" in said and "changed: seed 1234 -> 5" in said
    assert len(run.identities) == 2
