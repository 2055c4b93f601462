"""Curves hold each step once, whatever was killed."""

import importlib.util
import resource
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from tensorboardX.proto.event_pb2 import Event

from web2gpt.config.training import Train
from web2gpt.errors import ConfigError
from web2gpt.train.job import CURVES, METRICS
from web2gpt.train.metrics import Metrics, read_rows
from web2gpt.train.tracker import check_tracker


def test_rows_after_the_checkpoint_are_dropped_on_resume(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path, 0)
    for step in range(1, 6):
        metrics.add({"step": step, "loss": 1.0 / step})
    metrics.close()
    with (tmp_path / METRICS).open("ab") as file:
        file.write(b'{"step":6,"lo')  # cut short by a kill
    again = Metrics(tmp_path, 3)
    again.add({"step": 4, "valid_loss": 7.0})
    again.close()
    rows = read_rows(tmp_path / METRICS)
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert again.last_values()["loss"] == 1.0 / 3
    assert again.last_values()["valid_loss"] == 7.0
    assert len(list((tmp_path / CURVES).iterdir())) == 1


@pytest.mark.parametrize(
    "rest", [b"\x00" * 90, b"\x00\n" * 9, b"\xff\n", b'{"step":', b"5\n", b"{}\n"]
)
def test_what_a_power_cut_left_after_the_last_checkpoint_is_dropped(
    tmp_path: Path, rest: bytes
) -> None:
    (tmp_path / METRICS).write_bytes(b'{"step":1,"loss":2.0,"time":1.0}\n' + rest)
    metrics = Metrics(tmp_path, 1)
    metrics.add({"step": 2, "loss": 1.5})
    metrics.close()
    assert [row["step"] for row in read_rows(tmp_path / METRICS)] == [1, 2]


def test_tensorboard_has_the_same_numbers(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path, 0)
    metrics.add({"step": 1, "loss": 5.5, "lr": 1e-3})
    metrics.add({"step": 2, "loss": 5.25, "skipped": True, "grad_norm": None})
    metrics.close()
    (path,) = (tmp_path / CURVES).iterdir()
    rows = [
        (event.step, {value.tag: value.simple_value for value in event.summary.value})
        for event in events(path.read_bytes())
        if event.summary.value
    ]
    assert rows == [
        (1, {"loss": 5.5, "lr": pytest.approx(1e-3)}),
        (2, {"loss": 5.25, "skipped": 1.0}),
    ]


def events(content: bytes) -> Iterator[Event]:
    """TFRecord: length (8 bytes), its checksum (4), an event, its checksum (4)."""
    at = 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        yield Event.FromString(content[at + 12 : at + 12 + length])
        at += 16 + length


def test_a_full_disk_is_told_and_what_was_cut_short_is_not_joined_on(
    tmp_path: Path,
) -> None:
    metrics = Metrics(tmp_path, 0)
    metrics.add({"step": 1, "loss": 5.5})
    size = (tmp_path / METRICS).stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 9, before[1]))
    try:
        with pytest.raises(OSError, match="No space left"):
            metrics.add({"step": 2, "loss": 5.25})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [row["step"] for row in read_rows(tmp_path / METRICS)] == [1]


def test_what_json_cannot_say_is_null(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path, 0)
    metrics.add({"step": 1, "grad_norm": float("inf")})
    metrics.close()
    assert read_rows(tmp_path / METRICS)[0]["grad_norm"] is None


def test_a_tracker_is_used_only_if_named_and_must_then_be_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check_tracker(Train())
    with pytest.raises(ConfigError, match="the package wandb is not installed"):
        check_tracker(Train(wandb_project="gpt2"))
