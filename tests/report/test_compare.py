"""Two runs side by side: what differs, and what came of it."""

import json
from pathlib import Path

import pytest
from tests.report.conftest import make_run
from typer.testing import CliRunner

from web2gpt.cli import app
from web2gpt.config.load import dump_config, load_config


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, str]:
    """Two runs on one corpus, as results/ lays them out; the second deeper, shorter, and better."""
    made = make_run(tmp_path)
    source = {"name": "a", "kind": "jsonl", "paths": ["a.jsonl"]}
    for name, layers in (("first", 6), ("second", 8)):
        folder = tmp_path / "runs" / name
        (folder / "train").mkdir(parents=True, exist_ok=True)
        config = load_config(
            {"input": [source], "data": {"name": "corpus"}, "model": {"n_layer": layers}}
        )
        (folder / "config.yaml").write_text(dump_config(config))
    rows = [{"step": step, "loss": 2.5} for step in range(10, 210, 10)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "runs" / "second" / "train" / "metrics.jsonl").write_text(text)
    return str(made.run), str(tmp_path / "runs" / "second")


def test_what_differs_stands_side_by_side(runs: tuple[str, str]) -> None:
    told = json.loads(CliRunner().invoke(app, ["compare", *runs, "--json"]).output)
    assert told["runs"] == list(runs)
    assert told["settings"] == {"model.n_layer": [6, 8]}
    assert told["funnel"]["urls: kept"] == [90, 90]
    assert told["funnel"]["urls: malformed"] == [2, 2]
    training = told["training"]
    assert training["steps"] == [300, 200]
    assert training["last valid loss"] == [3.5, None]
    common = [name for name in training if name.startswith("loss at step")]
    assert common[0] == "loss at step 10"
    assert common[-1] == "loss at step 200"
    assert all(training[name][1] == 2.5 for name in common)


def test_it_is_shown_without_colour_where_there_is_no_terminal(runs: tuple[str, str]) -> None:
    result = CliRunner().invoke(app, ["compare", *runs], env={"COLUMNS": "250"})
    assert result.exit_code == 0
    assert "\x1b" not in result.output
    for told in ("model.n_layer", "urls: duplicate", "last loss", f"loss of {runs[1]}"):
        assert told in result.output


def test_a_run_beside_itself_differs_in_nothing(runs: tuple[str, str]) -> None:
    told = json.loads(CliRunner().invoke(app, ["compare", runs[0], runs[0], "--json"]).output)
    assert told["settings"] == {}
