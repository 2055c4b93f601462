"""Curves hold each step once, whatever was killed."""

from pathlib import Path

from web2gpt.train.metrics import CURVES, ROWS, Metrics, read_rows


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
