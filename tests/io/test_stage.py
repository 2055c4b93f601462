"""A shard's job counts each record once, and its files appear together."""

from pathlib import Path
from typing import Any

import pytest
import zstandard

from web2gpt.errors import InputError, LeaseError
from web2gpt.io.shards import JsonlWriter, read_jsonl
from web2gpt.io.stage import ShardFiles, ShardJob
from web2gpt.io.statistics import Statistics


@pytest.fixture
def files(tmp_path: Path) -> ShardFiles:
    source = tmp_path / "documents" / "x-0000.jsonl.zst"
    with JsonlWriter(source) as writer:
        for number in range(6):
            writer.write({"id": str(number), "url": f"u{number}", "text": "t" * number})
    return ShardFiles(
        (source,),
        tmp_path / "clean" / "x-0000.jsonl.zst",
        tmp_path / "rejected" / "clean" / "x-0000.jsonl.zst",
        tmp_path / "stats" / "clean" / "x-0000.json",
        tmp_path / "work" / "clean" / "x-0000",
    )


def run(files: ShardFiles, *, text: bool = False, **job: object) -> bool:
    """Keep even lengths, drop odd ones but the fifth, which is an error; the fourth is split."""
    with ShardJob("clean", "documents", files, job, rejected_text=text) as shard:
        if shard.needed:
            for document in shard.documents():
                length = len(document["text"])
                if length == 5:
                    shard.error(document, "unreadable")
                elif length % 2:
                    shard.drop(document, "odd", length)
                elif length == 4:
                    shard.keep(document, {**document, "id": "4b"})
                else:
                    shard.keep(document)
        return shard.needed


def test_documents_rejected_and_statistics_appear_at_their_places(
    files: ShardFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folders' names are the stage's own for documents and rejected alike, as in clean."""
    assert run(files)
    assert [record["id"] for record in _read(files.documents)] == ["0", "2", "4", "4b"]
    assert list(_read(files.rejected)) == [
        {"id": "1", "url": "u1", "reason": "odd", "figure": 1},
        {"id": "3", "url": "u3", "reason": "odd", "figure": 3},
        {"id": "5", "url": "u5", "reason": "unreadable", "figure": None},
    ]
    total = Statistics.load(files.stats)
    assert (total.read, total.kept, total.out) == (6, 3, 4)
    assert (total.dropped, total.errors) == ({"odd": 2}, {"unreadable": 1})
    assert total.bytes_in == files.inputs[0].stat().st_size
    assert total.bytes_out == files.documents.stat().st_size
    output = capsys.readouterr()
    assert output.out.startswith("clean: 6 documents in, 3 kept, 4 out (2 odd, 1 unreadable)")
    assert len(output.out.splitlines()) == 1


def test_the_text_is_kept_where_it_was_asked_for(files: ShardFiles) -> None:
    run(files, text=True)
    assert [record["text"] for record in _read(files.rejected)] == ["t", "ttt", "ttttt"]


def test_a_second_copy_of_the_same_job_finds_its_work_done(files: ShardFiles) -> None:
    assert run(files, version=1)
    assert not run(files, version=1)
    assert run(files, version=2)


def test_a_changed_input_or_a_deleted_output_makes_the_job_run_again(files: ShardFiles) -> None:
    run(files)
    files.rejected.unlink()
    assert run(files)
    with JsonlWriter(files.inputs[0]) as writer:
        writer.write({"id": "0", "url": "u0", "text": ""})
    assert run(files)
    assert Statistics.load(files.stats).read == 1


def test_the_same_input_gives_the_same_bytes(files: ShardFiles) -> None:
    run(files, version=1)
    before = files.documents.read_bytes(), files.rejected.read_bytes()
    run(files, version=2)
    assert (files.documents.read_bytes(), files.rejected.read_bytes()) == before


def test_an_error_publishes_nothing_and_frees_the_folder(files: ShardFiles) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        ShardJob("clean", "documents", files, {}, rejected_text=False) as shard,
    ):
        shard.keep(*shard.documents())
        raise ZeroDivisionError
    assert not any(path.exists() for path in files.outputs)
    assert run(files)


def test_a_lost_lease_publishes_nothing(files: ShardFiles) -> None:
    with (
        pytest.raises(LeaseError),
        ShardJob("clean", "documents", files, {}, rejected_text=False) as shard,
    ):
        for document in shard.documents():
            shard.keep(document)
        (files.work / "lease.json").write_text(
            '{"token": "x", "host": "elsewhere", "boot": "", "pid": 1, "started": ""}'
        )
    assert not any(path.exists() for path in files.outputs)


def test_a_bad_line_is_counted_recorded_and_passed_over(files: ShardFiles) -> None:
    lines = b'{"id": "0", "url": null, "text": ""}\nbad\n[]\n{"id": "2", "text": "tt"}\n'
    files.inputs[0].write_bytes(zstandard.compress(lines))
    run(files)
    assert Statistics.load(files.stats).errors == {"not_json": 1, "not_an_object": 1}
    where = {"file": str(files.inputs[0]), "id": None, "url": None}
    assert list(_read(files.rejected)) == [
        {"reason": "not_json", "line": 2, **where},
        {"reason": "not_an_object", "line": 3, **where},
    ]


def test_a_broken_or_missing_shard_is_named(files: ShardFiles) -> None:
    whole = files.inputs[0].read_bytes()
    files.inputs[0].write_bytes(whole[:-6])
    with pytest.raises(InputError, match=r"x-0000\.jsonl\.zst: broken at line"):
        run(files)
    files.inputs[0].unlink()
    with pytest.raises(InputError, match=r"x-0000\.jsonl\.zst: no such file"):
        run(files)
    assert not any(path.exists() for path in files.outputs)


def test_counts_that_do_not_add_up_are_a_fault_of_the_stage(files: ShardFiles) -> None:
    with (
        pytest.raises(AssertionError),
        ShardJob("clean", "documents", files, {}, rejected_text=False) as shard,
    ):
        shard.statistics.read += 1
    assert not any(path.exists() for path in files.outputs)


def _read(path: Path) -> list[dict[str, Any]]:
    records = list(read_jsonl(path))
    assert all(isinstance(record, dict) for record in records)
    return records
