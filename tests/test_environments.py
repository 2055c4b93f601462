"""Conda's file and the image name the pinned files and nothing else, and these are pinned."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ENVS = ROOT / "envs"
PINNED = re.compile(r"^[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.+-]*$")


def lines(name: str) -> list[str]:
    said = (line.split("#")[0].strip() for line in (ENVS / name).read_text().splitlines())
    return [line for line in said if line]


def normal(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("file", sorted(path.name for path in ENVS.glob("*.txt")))
def test_every_package_is_pinned_once(file: str) -> None:
    found = lines(file)
    assert [line for line in found if not PINNED.match(line)] == []
    names = [normal(line.split("==")[0]) for line in found]
    assert len(names) == len(set(names))


def test_what_the_package_needs_is_what_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["fast"]]
    pinned = [line.split("==")[0] for name in ("data.txt", "train.txt") for line in lines(name)]
    assert {normal(name) for name in needed} == {normal(name) for name in pinned}


def test_the_conda_environment_installs_the_pinned_files() -> None:
    environment = yaml.safe_load((ENVS / "web2gpt.yaml").read_text())
    python, pip, packages = environment["dependencies"]
    assert (environment["name"], pip) == ("web2gpt", "pip")
    assert python == "python=3.11" and "nodefaults" in environment["channels"]
    assert packages["pip"] == ["-c constraints.txt", "-r data.txt", "-r train.txt", "-e .."]
    for option in packages["pip"]:
        assert (ENVS / option.split()[1]).exists(), option


def test_the_image_installs_the_pinned_files() -> None:
    text = (ENVS / "Containerfile").read_text().replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] not in "# "]
    assert [step[0] for step in steps] == ["FROM", "ARG", "WORKDIR", "COPY", "RUN"]
    commands = dict(map(tuple, steps))
    assert commands["FROM"] == "docker.io/library/python:3.11-slim"
    files = re.findall(r"-[cr] (\S+)", commands["RUN"])
    assert files == ["envs/constraints.txt", "envs/data.txt", "envs/train.txt"]
    assert all((ROOT / file).exists() for file in files)
    assert commands["COPY"] == ". ." and "--no-deps ." in commands["RUN"]


def test_the_cluster_s_plugin_is_in_no_everyday_environment() -> None:
    everyday = ("data.txt", "train.txt", "dev.txt", "constraints.txt", "peers.txt")
    plugins = [line for name in everyday for line in lines(name) if "executor-plugin-" in line]
    assert plugins == []
    assert any(
        line.startswith("snakemake-executor-plugin-slurm==") for line in lines("cluster.txt")
    )
