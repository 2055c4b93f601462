"""The tests' cluster touches no Slurm but its own."""

import os
from pathlib import Path

import pytest
from tests.cluster import slurm
from tests.cluster.slurm import MARK, Cluster, NoClusterError, require


@pytest.fixture(autouse=True)
def configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """As on a machine where a cluster could be made, whose configuration is a file of the test."""
    path = tmp_path / "slurm.conf"
    monkeypatch.setattr(slurm, "CONFIGURATION", path)
    monkeypatch.setattr(slurm, "TOOLS", ("true",))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    return path


def test_another_slurm_is_left_alone(configuration: Path, tmp_path: Path) -> None:
    configuration.write_text("ClusterName=theirs\n")
    with pytest.raises(NoClusterError, match="is another Slurm's"), Cluster(tmp_path / "own"):
        pass
    assert configuration.read_text() == "ClusterName=theirs\n"


def test_a_slurm_that_the_environment_names_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", "/theirs/slurm.conf")
    with pytest.raises(NoClusterError, match="SLURM_CONF"):
        require()


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    require()
    monkeypatch.setattr(slurm, "TOOLS", ("true", "no-such-slurm"))
    with pytest.raises(NoClusterError, match="not installed: no-such-slurm"):
        require()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NoClusterError, match="not root"):
        require()


def test_what_a_killed_run_left_is_removed_and_no_other_s_process_ended(
    configuration: Path, tmp_path: Path
) -> None:
    left = tmp_path / "web2gpt-slurm-left"
    left.mkdir()
    (left / "n1.pid").write_text(str(os.getpid()))  # the number belongs to another by now
    configuration.write_text(f"{MARK}{left}\nClusterName=web2gpt\n")
    Cluster(tmp_path / "own").clear_after_a_killed_run()
    assert not configuration.exists() and not left.exists()
