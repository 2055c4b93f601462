"""The stages from archive to corpus make the same bytes whatever runs them, and after any kill."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.clean import chain

from web2gpt.io import atomic, frames, shards, work
from web2gpt.io.frames import FrameWriter
from web2gpt.io.shards import JsonlWriter


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working folder, in which the inputs lie."""
    folder = tmp_path_factory.mktemp("chain")
    chain.make_inputs(folder)
    back = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(back)


@pytest.fixture(scope="module")
def undisturbed(place: Path) -> Path:
    for stage in chain.STAGES:
        chain.run(stage, place / "undisturbed")
    return place / "undisturbed"


def test_the_chain_puts_all_stages_to_work(undisturbed: Path) -> None:
    documents = list(shards.read_jsonl(undisturbed / "merge.documents.jsonl.zst"))
    assert 40 < len(documents) < 62
    assert any("piece" in document for document in documents)
    assert any("held_out" in document for document in documents)
    for stage in ("extract-pages", "extract-lines", "clean-pages"):
        assert list(shards.read_jsonl(undisturbed / f"{stage}.rejected.jsonl.zst"))


@pytest.mark.parametrize(("hash_seed", "workers"), [("1", 2), ("2", 8)])
def test_same_bytes_for_any_number_of_cores_and_any_hash_seed(
    undisturbed: Path, hash_seed: str, workers: int
) -> None:
    other = undisturbed.with_name(f"seed-{hash_seed}")
    subprocess.run(
        [sys.executable, chain.__file__, str(other), str(workers)],
        check=True, cwd=undisturbed.parent, env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )  # fmt: skip
    assert chain.results(other) == chain.results(undisturbed)


def die_at(call: int, *places: tuple[object, str]) -> None:
    """From the given call on of these functions together, the process kills itself."""
    count = iter(range(call))

    def deadly(function: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*given: object, **named: object) -> object:
            if next(count, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*given, **named)

        return wrapped

    for owner, name in places:
        setattr(owner, name, deadly(getattr(owner, name)))


def run_to_death(stage: str, folder: Path, call: int, *places: tuple[object, str]) -> bool:
    """Run a stage in a forked process; whether it was killed."""
    child = os.fork()
    if child == 0:
        die_at(call, *places)
        chain.run(stage, folder)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


WRITES = ((JsonlWriter, "write"), (FrameWriter, "write"))
PUBLICATIONS = ((work, "publish"), (shards, "publish"), (frames, "publish"), (atomic, "publish"))


@pytest.mark.parametrize("stage", chain.STAGES)
@pytest.mark.parametrize(
    ("places", "calls"), [(WRITES, (0, 11)), (PUBLICATIONS, (0, 1, 3, 4, 5))], ids=["write", "end"]
)
def test_killed_and_started_again_makes_the_same_bytes(
    undisturbed: Path,
    tmp_path: Path,
    stage: str,
    places: tuple[tuple[object, str], ...],
    calls: tuple[int, ...],
) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    for name, content in chain.results(undisturbed).items():
        if not name.startswith(stage.replace(" ", "-")):
            (folder / name).write_bytes(content)
    killed = [run_to_death(stage, folder, call, *places) for call in calls]
    if stage != "count" or places is PUBLICATIONS:
        assert any(killed)
    chain.run(stage, folder)
    assert chain.results(folder) == chain.results(undisturbed)
