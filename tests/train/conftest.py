"""One tiny corpus of tokens for all tests of training, and one run on it that nothing disturbs."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from runs import Run
from tiny import PLANTED, Data, make_data, settings


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def unbroken(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run to its end, with a gradient that is no number and a spike planted in it."""
    run = Run(data, tmp_path_factory.mktemp("unbroken"), PLANTED)
    run.finish(settings(timers=True, log_interval=4, peak_tflops=1e-3))
    return run
