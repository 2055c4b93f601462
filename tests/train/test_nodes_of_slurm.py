"""Who the nodes are, as Slurm 22.05 was seen to tell it, and torchrun's way, which wins."""

from pathlib import Path
from threading import Thread

import pytest

from web2gpt.errors import ConfigError
from web2gpt.train import nodes as module
from web2gpt.train.nodes import Nodes
from web2gpt.train.turn import leading, turn_comes

# Of srun --nodes=2 --ntasks=2 --ntasks-per-node=1 in job 40213, on its second node.
STEP = {
    "SLURM_JOB_ID": "40213",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_NODEID": "1",
    "SLURM_SRUN_COMM_PORT": "38645",
}
ANSWERS = {
    ("show", "hostnames", "n[1-2]"): "n1\nn2\n",
    ("--oneliner", "show", "node", "n1"): "NodeName=n1 Arch=x86_64 NodeAddr=10.1.0.7 Port=6818",
}


@pytest.fixture(autouse=True)
def _scontrol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_scontrol", lambda *command: ANSWERS[command])


def test_a_step_of_slurm_tells_number_first_address_and_launch() -> None:
    found = Nodes.of(STEP)
    assert found == Nodes(2, 1, f"10.1.0.7:{20_000 + 40213 % 12_000}", "40213.0.38645")
    requeued = Nodes.of(STEP | {"SLURM_SRUN_COMM_PORT": "41001"})
    assert requeued.launch != found.launch and requeued.address == found.address


def test_what_is_set_by_hand_wins() -> None:
    by_hand = {"NNODES": "4", "NODE_RANK": "3", "MASTER_ADDR": "a", "MASTER_PORT": "5"}
    assert Nodes.of(STEP | by_hand) == Nodes(4, 3, "a:5", "40213.0.38645")
    assert Nodes.of(by_hand) == Nodes(4, 3, "a:5", "a:5")


def test_one_node_needs_nothing_and_several_need_all() -> None:
    assert Nodes.of({}) == Nodes.of({"SLURM_STEP_NUM_NODES": "1", "SLURM_JOB_ID": "1"}) == Nodes()
    with pytest.raises(ConfigError, match="MASTER_PORT"):
        Nodes.of({"NNODES": "2", "NODE_RANK": "0", "MASTER_ADDR": "a"})


def test_processes_that_do_not_spread_evenly_are_refused() -> None:
    assert Nodes(4).share(32) == 8
    with pytest.raises(ConfigError, match="6 processes do not spread evenly over 4 nodes"):
        Nodes(4).share(6)


def test_other_nodes_begin_when_the_first_does(tmp_path: Path) -> None:
    work, came = tmp_path / "train", []
    first, second = Nodes(2, 0, "a:5", "7.0.1"), Nodes(2, 1, "a:5", "7.0.1")
    other = Thread(
        target=lambda: came.append(turn_comes(work, second, lambda: False, lambda: False))
    )
    other.start()
    assert not came
    with leading(work, first):
        other.join(timeout=20)
        assert came == [True]
        assert not turn_comes(work, Nodes(2, 1, "a:5", "8.0.1"), lambda: True, lambda: False)
    assert list(tmp_path.iterdir()) == []


def test_a_launch_that_fails_leaves_its_mark_until_the_next(tmp_path: Path) -> None:
    failed, again = Nodes(2, 0, "a:5", "7.0.1"), Nodes(2, 0, "a:5", "8.0.1")
    with pytest.raises(ZeroDivisionError), leading(tmp_path / "train", failed):
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["train_launch_7.0.1"]
    with leading(tmp_path / "train", again):
        assert [path.name for path in tmp_path.iterdir()] == ["train_launch_8.0.1"]
