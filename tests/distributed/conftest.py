"""One pool of processes for all distributed tests of a session."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from pool import Worlds, start_fork_server


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    start_fork_server(tmp_path_factory.mktemp("extensions"))
    worlds = Worlds()
    yield worlds
    worlds.kill()
