"""The shell blocks of README and tutorials run, on a demo with a shorter training."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.guide import REPOSITORY, TUTORIALS, Block, blocks

pytestmark = pytest.mark.long
ORDER = ("demo", "urls", "warc", "jsonl", "tokens")
SHORT = {
    "steps: 320": "steps: 20",
    "checkpoint_interval: 80": "checkpoint_interval: 20",
    "eval_interval: 80": "eval_interval: 20",
    "max_new_tokens: 100": "max_new_tokens: 20",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a checkout is one, in which nothing has been run."""
    folder = tmp_path_factory.mktemp("tutorials") / "web2gpt"
    folder.mkdir()
    for name in ("workflow", "envs", "src"):
        (folder / name).symlink_to(REPOSITORY / name)
    config = (REPOSITORY / "config.yaml").read_text()
    for long, short in SHORT.items():
        assert long in config
        config = config.replace(long, short)
    (folder / "config.yaml").write_text(config)
    return folder


def run(project: Path, text: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-eu", "-c", text], cwd=project, check=False,
                          env={**os.environ, "PATH": path}, capture_output=True, text=True,
                          timeout=900)  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def test_the_order_names_every_tutorial() -> None:
    assert sorted(ORDER) == [page.stem for page in TUTORIALS]


@pytest.mark.parametrize("name", ORDER)
def test_a_tutorial_runs(project: Path, name: str) -> None:
    for block in blocks(Path(f"docs/tutorials/{name}.md")):
        if block.file:
            (project / block.file).write_text(block.text)
        elif block.language == "sh":
            run(project, block.text)


def test_the_blocks_of_the_readme_run(project: Path) -> None:
    shell = [block for block in blocks(Path("README.md")) if block.language == "sh"]
    assert shell
    for block in shell:
        run(project, _without_make(block))


def _without_make(block: Block) -> str:
    """`make run` and `make test` set up an environment: they are what calls this."""
    return re.sub(r"^make .*$", "", block.text, flags=re.MULTILINE)
