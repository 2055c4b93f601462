"""Tests run on two cores: a file's tests stay together, so that what they share is made once."""

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # a busy machine is no fault
settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)  # xdist's own hook reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Hand each file to one process whole; all files of workflow/ to one, for their one run, and
    these first, since they take longest.
    """
    items.sort(key=lambda item: item.path.parent.name != "workflow")
    for item in items:
        folder = item.path.parent.name
        group = folder if folder in ("workflow", "distributed") else f"{folder}/{item.path.name}"
        item.add_marker(pytest.mark.xdist_group(group))
