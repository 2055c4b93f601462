"""One demo for all tests of this folder."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def make_demo(folder: Path, hash_seed: str) -> Path:
    """Run the command as the workflow does."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "web2gpt.cli", "demo", "--output", str(folder)]
    subprocess.run(command, check=True, env=environment, capture_output=True, timeout=240)
    return folder


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_demo(tmp_path_factory.mktemp("demo"), "1")


@pytest.fixture(scope="session")
def second_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo once more, with sets and dicts of strings in another order."""
    return make_demo(tmp_path_factory.mktemp("again"), "2")


@pytest.fixture(scope="session")
def planted(demo: Path) -> Any:
    return json.loads((demo / "planted.json").read_text())
