"""A later run tries again what failed and may pass; answers that are archived stay as they are."""

from contextlib import asynccontextmanager

import pytest

from web2gpt.config.fetch import Fetch
from web2gpt.fetch.publish import FetchFiles, Publication
from web2gpt.fetch.stage import fetch_shard
from web2gpt.io.shards import read_jsonl
from web2gpt.io.warc import read_responses
from web2gpt.io.work import WorkFolder

PATHS = ("/absent", "/busy", "/page", "/stuck")


async def hang_up(head, writer):
    pass


@pytest.fixture
def shard(tmp_path, server_class, answer):
    """``shard(retry_failed=…, **pages)`` fetches the four paths, and gives what was asked for."""
    out = tmp_path / "out"
    files = FetchFiles(tmp_path / "urls-0000.tsv", out / "x.warc.gz", out / "x.outcomes.jsonl.zst",
                       out / "r.jsonl.zst", out / "s.json", out / "work")  # fmt: skip
    lines = [f"http://site.test{path}\tlist\n" for path in PATHS]
    files.urls.write_text("".join(lines) + "nonsense\n")
    pages = {"/page": answer(), "/busy": answer(b"", "503 Busy"), "/stuck": hang_up}

    def run(retry_failed=0, **changed):
        servers = []

        @asynccontextmanager
        async def serve(folder):
            changes = {f"/{name}": page for name, page in changed.items()}
            async with server_class({**pages, **changes}) as server:
                servers.append(server)
                yield frozenset(("site.test",)), server.address, server.port

        settings = Fetch(serve=str(tmp_path), delay=0.0, retries=0, retry_failed=retry_failed)
        fetch_shard(files, settings, serve)
        return {path for server in servers for path in server.requests} - {"/robots.txt"}

    run.files = files
    return run


def delete_outputs(files):
    """As Snakemake does before it runs a job again."""
    for path in files.outputs:
        path.unlink(missing_ok=True)


def outcomes(files):
    return [record["outcome"] for record in read_jsonl(files.outcomes)]


def answers(files):
    return [(one.requested_url.removeprefix("http://site.test"), one.outcome, one.record_id)
            for one in read_responses(files.warc, 1 << 20)]  # fmt: skip


def test_only_failures_that_may_pass_are_tried_again(shard, answer):
    assert shard() == set(PATHS)
    assert outcomes(shard.files) == ["http_404", "http_503", "kept", "reset", "bad_line"]
    first = answers(shard.files)
    delete_outputs(shard.files)

    assert shard(1, busy=answer(b"<p>at last</p>")) == {"/busy", "/stuck"}
    assert outcomes(shard.files) == ["http_404", "kept", "kept", "reset", "bad_line"]
    second = answers(shard.files)
    assert set(first) < set(second)  # the very records, by their ids
    assert [one[:2] for one in second] == [
        ("/absent", "http_404"), ("/busy", "http_503"), ("/busy", "kept"), ("/page", "kept")
    ]  # fmt: skip

    assert shard(1) == set()
    delete_outputs(shard.files)
    assert shard(2) == {"/stuck"}
    assert answers(shard.files) == second


def test_outputs_deleted_without_a_new_round_are_fetched_anew(shard):
    shard()
    delete_outputs(shard.files)
    assert shard() == set(PATHS)
    assert shard() == set()


def test_killed_before_publishing_nothing_is_fetched_twice(shard, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(WorkFolder, "publish", _killed)
        with pytest.raises(KeyboardInterrupt):
            shard()
    assert shard() == set()
    assert outcomes(shard.files) == ["http_404", "http_503", "kept", "reset", "bad_line"]
    assert len(answers(shard.files)) == 3


def test_killed_before_publishing_a_further_round_its_answers_are_published(
    shard, answer, monkeypatch
):
    shard()  # by hand: its outputs stay where they are
    with monkeypatch.context() as patch:
        patch.setattr(WorkFolder, "publish", _killed)
        with pytest.raises(KeyboardInterrupt):
            shard(1, busy=answer())
    assert outcomes(shard.files)[1] == "http_503"
    assert shard(1) == set()
    assert outcomes(shard.files) == ["http_404", "kept", "kept", "reset", "bad_line"]
    assert shard(1) == set()


def test_killed_in_a_further_round_it_goes_on(shard, answer, monkeypatch):
    shard()
    delete_outputs(shard.files)
    with monkeypatch.context() as patch:
        patch.setattr(Publication, "publish", _killed)
        with pytest.raises(KeyboardInterrupt):
            shard(1, busy=answer())
    assert shard(1) == set()
    assert outcomes(shard.files) == ["http_404", "kept", "kept", "reset", "bad_line"]


def _killed(*arguments, **named):
    raise KeyboardInterrupt
