"""Work folders: exclusive, emptied for another job, published whole."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from web2gpt.io.work import WorkFolder, file_states

PUBLISH_FOREVER = """
import itertools, sys
from pathlib import Path
from web2gpt.io.work import WorkFolder
root = Path(sys.argv[1])
targets = [root / "out" / name for name in ("a", "b", "c")]
for number in itertools.count():
    with WorkFolder(root / "work", {"stage": "x"}) as work:
        if number == 0 and work.is_published(targets):
            print("published", flush=True)
        drafts = {work.path / target.name: target for target in targets}
        for draft in drafts:
            draft.write_bytes(bytes([number % 251]) * 100_000)
        work.publish(drafts)
        if number == 0:
            print("running", flush=True)
"""


def test_a_folder_keeps_what_the_same_job_left(tmp_path: Path) -> None:
    for attempt in range(2):
        with WorkFolder(tmp_path / "work", {"stage": "x", "settings": {"a": 1}}) as work:
            assert (work.path / "part").exists() == bool(attempt)
            (work.path / "part").write_text("half done")


@pytest.mark.parametrize("other", [{"stage": "y"}, {"stage": "x", "version": 2}, {}])
def test_a_folder_left_by_another_job_is_emptied(tmp_path: Path, other: dict[str, object]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    with WorkFolder(tmp_path / "work", {"stage": "x"}) as work:
        (work.path / "part").write_text("half done")
        (work.path / "folder" / "deep").mkdir(parents=True)
        (work.path / "folder" / "deep" / "part").touch()
        (work.path / "link").symlink_to(outside)
    with WorkFolder(tmp_path / "work", other) as work:
        assert {path.name for path in work.path.iterdir()} == {"job", "lease.json"}
    assert (outside / "precious").exists()


def test_the_order_of_settings_makes_no_other_job(tmp_path: Path) -> None:
    with WorkFolder(tmp_path, {"a": 1, "b": {"c": 1, "d": 2}}):
        (tmp_path / "part").touch()
    with WorkFolder(tmp_path, {"b": {"d": 2, "c": 1}, "a": 1}):
        assert (tmp_path / "part").exists()


def test_published_is_known_until_a_result_changes(tmp_path: Path) -> None:
    target = tmp_path / "out" / "x"
    with WorkFolder(tmp_path / "work", {"stage": "x"}) as work:
        assert not work.is_published([target])
        (work.path / "x").write_text("result")
        work.publish({work.path / "x": target})
        assert work.is_published([target])
    with WorkFolder(tmp_path / "work", {"stage": "x"}) as work:
        assert work.is_published([target])
        assert not work.is_published([target, tmp_path / "out" / "y"])
    with WorkFolder(tmp_path / "work", {"stage": "x", "changed": True}) as work:
        assert not work.is_published([target])
    with WorkFolder(tmp_path / "work", {"stage": "x"}) as work:
        (work.path / "x").write_text("result")
        work.publish({work.path / "x": target})
    target.unlink()
    with WorkFolder(tmp_path / "work", {"stage": "x"}) as work:
        assert not work.is_published([target])


def test_publishing_leaves_nothing_of_the_work_behind(tmp_path: Path) -> None:
    with WorkFolder(tmp_path / "work", {}) as work:
        (work.path / "x").touch()
        (work.path / "scratch").touch()
        work.publish({work.path / "x": tmp_path / "x"})
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"job", "published.json"}


def test_file_states_tell_files_apart(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("x")
    before = file_states([second, first])
    assert [state[0] for state in before] == [str(first), str(second)]
    assert before[1][1:] == [-1, -1]
    first.write_text("xy")
    second.touch()
    after = file_states([first, second])
    assert after[0] != before[0]
    assert after[1] != before[1]


def test_killed_while_publishing_each_output_is_absent_or_whole(tmp_path: Path) -> None:
    chance = random.Random(1)
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", PUBLISH_FOREVER, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        if lines == ["published\n"]:
            lines.append(process.stdout.readline())
        assert lines[-1] == "running\n"
        time.sleep(chance.uniform(0, 0.03))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        contents = [path.read_bytes() for path in sorted((tmp_path / "out").glob("[abc]"))]
        assert all(len(content) == 100_000 and len(set(content)) == 1 for content in contents)
        targets = [tmp_path / "out" / name for name in ("a", "b", "c")]
        with WorkFolder(tmp_path / "work", {"stage": "x"}) as work:
            if work.is_published(targets):  # then they belong together
                assert len({path.read_bytes() for path in targets}) == 1
        for path in targets[: chance.randrange(3)]:  # as the workflow engine would
            path.unlink(missing_ok=True)


ORPHAN = """
import os, sys, time
from pathlib import Path
from web2gpt.io.work import WorkFolder

folder, output, go = map(Path, sys.argv[1:])
with WorkFolder(folder, {"stage": "x"}) as work:
    if work.is_published([output]):
        print("found done")
    else:
        print("making", flush=True)
        while not go.exists():
            time.sleep(0.01)
        draft = work.path / "draft"
        draft.write_text("made once")
        work.publish({draft: output})
"""


def test_what_outlived_its_workflow_is_put_back_when_the_next_one_deletes_it(
    tmp_path: Path,
) -> None:
    script, output, go = tmp_path / "stage.py", tmp_path / "output", tmp_path / "go"
    script.write_text(ORPHAN)
    stage = [sys.executable, str(script), str(tmp_path / "work"), str(output), str(go)]
    with subprocess.Popen(
        ["sh", "-c", '"$@" & wait', "sh", *stage], stdout=subprocess.PIPE, text=True
    ) as workflow:
        assert workflow.stdout is not None
        assert workflow.stdout.readline() == "making\n"
        workflow.kill()
    go.touch()
    while not output.exists():
        time.sleep(0.01)
    while (tmp_path / "work" / "lease.json").exists():
        time.sleep(0.01)
    output.unlink()  # as the workflow engine does with what it takes for incomplete
    again = subprocess.run(stage, capture_output=True, text=True, check=True)
    assert again.stdout == "found done\n"
    assert output.read_text() == "made once"
    assert not (tmp_path / "work" / "kept").exists()


def test_what_is_deleted_on_purpose_is_made_again(tmp_path: Path) -> None:
    output = tmp_path / "output"
    for _ in range(2):
        with WorkFolder(tmp_path / "work", {"stage": "x"}) as work:
            assert not work.is_published([output])
            draft = work.path / "draft"
            draft.write_text("made")
            work.publish({draft: output})
        output.unlink()


def test_drafts_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    with WorkFolder(tmp_path, {"stage": "x"}):
        (tmp_path / ".tmp-0123-shard").write_text("half")
    with WorkFolder(tmp_path, {"stage": "x"}):
        assert not (tmp_path / ".tmp-0123-shard").exists()
