"""Two nodes, here two launchers on one machine: they start, and end, together."""

import socket
from pathlib import Path

import pytest
from runs import PATIENCE, Run
from tiny import Data, settings


@pytest.mark.long
def test_a_second_node_ends_too_when_the_first_finds_its_work_done(
    data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for name, value in {"NNODES": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}.items():
        monkeypatch.setenv(name, str(value))
    chosen = settings(steps=4, check_interval=1, micro_batch_size=1)
    chosen["parallel"] = {"data": 2, "zero": 1}
    for _ in range(2):  # the second time all is published
        run = Run(data, tmp_path)
        processes = []
        for rank in ("1", "0"):
            monkeypatch.setenv("NODE_RANK", rank)
            processes.append(run.start(chosen))
        for process in processes:
            said = "".join(process.communicate(timeout=PATIENCE))
            assert process.returncode == 0, said
    assert run.done["step"] == 4
