"""The page of the made-up run, and of a run in results/ where there is one."""

from pathlib import Path

import pytest
from tests.report.conftest import make_run

from web2gpt.report.evidence import gather
from web2gpt.report.page import render

SCREENSHOTS = Path("results/page")
DEMO = Path("results/data/demo"), Path("results/runs/demo")


@pytest.fixture(scope="session", params=["made-up", "demo", "empty"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a page, named by the run it is about."""
    folder = tmp_path_factory.mktemp(request.param)
    data, run = DEMO
    match request.param:
        case "made-up":
            made = make_run(folder)
            data, run = made.data, made.run
        case "empty":
            data = run = folder
        case "demo" if not (run / "train" / "metrics.jsonl").exists():
            pytest.skip("no demo run; make run makes one")
    file = folder / f"{request.param}.html"
    file.write_text(render(gather(data, run)))
    return file
