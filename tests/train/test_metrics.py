"""Curves hold each step once, whatever was killed."""

import importlib.util
from pathlib import Path

import pytest

from web2gpt.config.training import Train
from web2gpt.errors import ConfigError
from web2gpt.train.metrics import CURVES, ROWS, Metrics, read_rows
from web2gpt.train.tracker import check_tracker


def test_rows_after_the_checkpoint_are_dropped_on_resume(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path, 0)
    for step in range(1, 6):
        metrics.add({"step": step, "loss": 1.0 / step})
    metrics.close()
    with (tmp_path / ROWS).open("ab") as file:
        file.write(b'{"step":6,"lo')  # cut short by a kill
    again = Metrics(tmp_path, 3)
    again.add({"step": 4, "valid_loss": 7.0})
    again.close()
    rows = read_rows(tmp_path / ROWS)
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert again.last_values()["loss"] == 1.0 / 3
    assert again.last_values()["valid_loss"] == 7.0
    assert len(list((tmp_path / CURVES).iterdir())) == 1


def test_what_json_cannot_say_is_null(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path, 0)
    metrics.add({"step": 1, "grad_norm": float("inf")})
    metrics.close()
    assert read_rows(tmp_path / ROWS)[0]["grad_norm"] is None


def test_a_tracker_is_used_only_if_named_and_must_then_be_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check_tracker(Train())
    with pytest.raises(ConfigError, match="the package wandb is not installed"):
        check_tracker(Train(wandb_project="gpt2"))
