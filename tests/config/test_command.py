"""``web2gpt config``: check, show, schema."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from web2gpt.cli import app
from web2gpt.config.load import load_config, read_config
from web2gpt.config.schema import schema_text

ROOT = Path(__file__).parents[2]
VALID = "input: [{name: web, kind: jsonl, paths: [web.jsonl]}]\noptimizer: {lr: 1e-3}\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web.jsonl").write_text('{"text": "x"}\n')
    (tmp_path / "config.yaml").write_text(VALID)
    return tmp_path / "config.yaml"


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "web2gpt.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )


def test_a_valid_configuration_is_said_to_be_so(file: Path) -> None:
    result = CliRunner().invoke(app, ["config", "check", str(file)])
    assert (result.exit_code, result.output) == (0, f"{file}: valid\n")


def test_all_faults_come_a_line_each_with_exit_code_1(file: Path) -> None:
    file.write_text(VALID + "model: {n_layers: 3, n_head: 0}\n")
    done = command("config", "check", str(file))
    assert done.returncode == 1
    assert done.stdout == ""
    first, second = done.stderr.splitlines()
    assert "model.n_head: 0 is not allowed" in first + second
    assert "model.n_layers: no such setting; did you mean n_layer?" in first + second


def test_a_missing_input_file_is_one_line_with_exit_code_1(file: Path) -> None:
    Path("web.jsonl").unlink()
    done = command("config", "check", str(file))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "input.web.paths: web.jsonl: no such file" in line


def test_names_that_snakemake_takes_for_patterns_are_told(file: Path) -> None:
    Path("folder").mkdir()
    for name in ("plain {} { x } [a].txt", "a {b}.txt", "a <data>.txt", "{c,[0-9]+}.jsonl"):
        Path("folder", name).write_text("x\n")
    odd = '["folder/plain {} { x } [a].txt", "folder/a {b}.txt", "folder/a <data>.txt"]'
    file.write_text(VALID.replace("web.jsonl", "folder") + f"evaluate: {{texts: {odd}}}\n")
    done = command("config", "check", str(file))
    assert done.returncode == 1
    lines = done.stderr.removeprefix("web2gpt: ").splitlines()
    assert [line.partition(" in a name")[0] for line in lines] == [
        "evaluate.texts: folder/plain {} { x } [a].txt: Snakemake takes { x }",
        "evaluate.texts: folder/a {b}.txt: Snakemake takes {b}",
        "evaluate.texts: folder/a <data>.txt: Snakemake takes <data>",
        "input.web.paths: folder/{c,[0-9]+}.jsonl: Snakemake takes {c,[0-9]+}",
    ]


def test_show_prints_the_resolved_configuration(file: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["config", "show", str(file)])
    assert result.exit_code == 0
    assert load_config(yaml.safe_load(result.output)) == read_config(file)
    assert yaml.safe_load(result.output)["model"]["n_layer"] >= 1


def test_schema_prints_what_stands_in_the_workflow() -> None:
    result = CliRunner().invoke(app, ["config", "schema"])
    stored = (ROOT / "workflow" / "schemas" / "config.schema.json").read_text()
    assert result.output == stored, (
        "stale: web2gpt config schema > workflow/schemas/config.schema.json"
    )


def test_the_schema_says_a_description_and_default_for_each_setting() -> None:
    schema = json.loads(schema_text())
    for name, section in schema["$defs"].items():
        assert section["additionalProperties"] is False
        for key, setting in section["properties"].items():
            assert "description" in setting, f"{name}.{key}"
            assert "default" in setting or key in section["required"], f"{name}.{key}"


def test_the_schema_does_not_depend_on_the_hash_seed() -> None:
    texts = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", "from web2gpt.config.schema import *; print(schema_text())"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(done.stdout)
    assert len(texts) == 1
