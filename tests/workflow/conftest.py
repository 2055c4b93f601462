"""A small run of the whole chain, made once and copied for each test that changes it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.workflow.project import Project, small_config


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The small project after ``snakemake all``; not to be changed."""
    folder = tmp_path_factory.mktemp("small") / "project"
    folder.mkdir()
    project = Project(folder, small_config(folder))
    project.succeed("all")
    return project


@pytest.fixture
def rerun(finished: Project, tmp_path: Path) -> Project:
    """A copy of the finished project, to change at will."""
    return finished.copy(tmp_path / "project")


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[str], Project]:
    """Make a small project in which nothing has been run."""

    def make(name: str = "fresh") -> Project:
        folder = tmp_path / name
        folder.mkdir()
        return Project(folder, small_config(folder))

    return make
