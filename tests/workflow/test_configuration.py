"""A wrong configuration ends with one clear line a fault, exit code 1, before any job starts."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.workflow.project import Project, small_config

NOTE = "Using workflow specific profile"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("configuration")
    return Project(folder, small_config(folder))


def faults(project: Project, **sections: Any) -> list[str]:
    """The lines that Snakemake ends with under a changed configuration."""
    base = deepcopy(project.config)
    config = deepcopy(base)
    for name, value in sections.items():
        config[name] = {**config.get(name, {}), **value} if isinstance(value, dict) else value
    project.write_config(config)
    done = project.run("all")
    project.write_config(base)
    assert done.returncode == 1, done.stdout
    assert not (project.folder / "results").exists()
    return [line for line in done.stdout.splitlines() if line and not line.startswith(NOTE)]


def test_an_unknown_key_names_the_nearest(project: Project) -> None:
    assert faults(project, model={"n_layr": 3}) == [
        "model.n_layr: no such setting; did you mean n_layer?"
    ]


def test_a_wrong_type_names_key_and_value(project: Project) -> None:
    (line,) = faults(project, train={"steps": "many"})
    assert line.startswith("train.steps: 'many' is not allowed")


def test_layout_against_processes(project: Project) -> None:
    (line,) = faults(project, train={"processes": 3})
    assert "train.processes = 3" in line and "tensor 2 x pipeline 1 x data 1" in line


def test_heads_and_width_must_divide_by_tensor(project: Project) -> None:
    (line,) = faults(project, parallel={"tensor": 3})
    assert "parallel.tensor = 3 does not divide model.n_head = 2" in line


def test_a_missing_input_file(project: Project) -> None:
    (line,) = faults(project, input=[{"name": "a", "kind": "urls", "paths": ["nowhere.txt"]}])
    assert line.startswith("input.a.paths: nowhere.txt: no such file")


def test_a_file_that_is_no_utf_8(project: Project) -> None:
    file = project.folder / "config.yaml"
    good = file.read_bytes()
    file.write_bytes(good + b"# caf\xe9\n")
    done = project.run("all")
    file.write_bytes(good)
    assert done.returncode == 1
    assert "config.yaml: not UTF-8 text" in done.stdout and "Traceback" not in done.stdout


def test_numbers_by_config_on_the_command_line(project: Project) -> None:
    done = project.run("--config", "train={steps: 5, exit_after: soon}", "--", "all")
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert [line for line in lines if line.startswith("train.")] == [
        "train.exit_after: 'soon' is not allowed: input should be a valid number"
    ]


def test_several_faults_are_several_lines(project: Project) -> None:
    lines = faults(project, model={"n_layr": 3}, train={"steps": -1}, mdel=1)
    assert len(lines) == 3


def test_a_real_crawl_needs_a_contact(project: Project) -> None:
    (line,) = faults(project, fetch={"serve": None})
    assert line.startswith("fetch.contact: ")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("decontaminate", "names no evaluation set"),
        ("fetch", "no source of the kind urls"),
        ("urls", "no source of the kind urls"),
        ("merge", "all sources of input are of the kind tokens"),
        ("dedup", "all sources of input enter at tokenize"),
    ],
)
def test_a_target_left_out_says_so_in_one_line(
    project: Project, tmp_path: Path, target: str, reason: str
) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"text": "a"}\n')
    for ending in (".bin", ".idx"):
        (tmp_path / f"pair{ending}").touch()
    jsonl = {"name": "a", "kind": "jsonl", "paths": [str(lines)], "enter": "tokenize"}
    tokens = {"name": "b", "kind": "tokens", "paths": [str(tmp_path / "pair")]}
    sources = {
        "decontaminate": project.config["input"],
        "fetch": [jsonl],
        "urls": [jsonl],
        "merge": [tokens],
        "dedup": [jsonl],
    }[target]
    config = deepcopy(project.config)
    project.write_config({**config, "input": sources})
    done = project.run(target)
    project.write_config(config)
    said = [line for line in done.stdout.splitlines() if line.startswith(f"{target}: ")]
    assert done.returncode == 1
    assert len(said) == 1 and reason in said[0]
