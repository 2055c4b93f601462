"""The benchmark of training runs as a whole on a CPU, so that GPU time is spent on figures only."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PROGRAM = Path(__file__).with_name("train.py")
VOCAB = 256  # padded nowhere, so that rivals have the same vocabulary


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokens") / "some.bin"
    draws = np.random.default_rng(0).random(20_000) ** 3
    (draws * VOCAB).astype("<u2").tofile(path)
    return path


def run(tokens: Path, output: Path, *options: str) -> tuple[list[dict[str, Any]], str]:
    command = [sys.executable, PROGRAM, "--tokens", tokens, "--output", output, "--sizes", "tiny"]
    command += ["--device", "cpu", "--precision", "fp32", "--vocab-size", str(VOCAB)]
    command += ["--no-compile", "--warmup", "1", *options]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = (output / "results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], done.stdout


@pytest.mark.long
def test_a_case_that_fails_costs_only_itself(tokens: Path, tmp_path: Path) -> None:
    results, said = run(tokens, tmp_path, "--contenders", "nanogpt", "ours", "--breakdown")
    product, broken, ours = results
    assert product["tflops"] > 0
    assert broken["error"] and "model.py" in "".join(broken["log"])
    assert len(ours["losses"]) == 4
    assert ours["losses"][-1] == pytest.approx(np.log(VOCAB), rel=0.1)
    assert ours["peak_bytes"] > ours["estimate_bytes"] > 0
    assert ours["breakdown"]["milliseconds"]
    assert "tiny ours" in said


@pytest.mark.long
def test_rivals_and_layouts_have_the_same_losses(tokens: Path, tmp_path: Path) -> None:
    contenders = ["ours", "ours:layout=1x1x2-1", "huggingface"]
    _, ours, twice, rival = run(tokens, tmp_path, "--contenders", *contenders)[0]
    assert twice["losses"] == pytest.approx(ours["losses"], rel=1e-6)
    assert rival["losses"] == pytest.approx(ours["losses"], rel=1e-5)


@pytest.mark.long
def test_a_case_that_takes_too_long_is_ended(tokens: Path, tmp_path: Path) -> None:
    results, _ = run(
        tokens, tmp_path, "--contenders", "huggingface", "--steps", "1000000", "--limit", "20"
    )
    assert "longer than 20 s" in results[1]["error"]
