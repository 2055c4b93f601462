"""A shard's fetch: everything accounted for, in the list's order, whatever the timing."""

from collections import Counter

import orjson
import pytest
from fastwarc.warc import ArchiveIterator as FastArchiveIterator
from fastwarc.warc import WarcRecordType
from warcio.archiveiterator import ArchiveIterator

from web2gpt.config.fetch import Fetch
from web2gpt.demo.server import serve_folder
from web2gpt.errors import ConfigError, InputError, LeaseError
from web2gpt.fetch.publish import FetchFiles
from web2gpt.fetch.stage import fetch_shard
from web2gpt.io.shards import read_jsonl
from web2gpt.io.statistics import Statistics
from web2gpt.io.warc import read_responses

PAGES = 40


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    for host in ("a.test", "b.test", "c.test"):
        (folder / host).mkdir(parents=True)
        for number in range(PAGES):
            (folder / host / f"{number:03}.html").write_text(f"<p>{host} {number}</p>" * 50)
    (folder / "b.test" / "picture.png").write_bytes(b"\x89PNG")
    (folder / "b.test" / "robots.txt").write_text("User-agent: *\nDisallow: /private\n")
    (folder / "c.test" / "_redirects").write_text("/moved http://a.test/000.html 301\n")
    return folder


@pytest.fixture
def files(tmp_path, site):
    urls = [f"http://{host}/{number:03}.html" for host in ("a.test", "b.test", "c.test")
            for number in range(PAGES)]  # fmt: skip
    urls += ["http://b.test/gone.html", "http://b.test/picture.png", "http://b.test/private/1",
             "http://c.test/moved", "http://d.test/", "http://127.0.0.1/"]  # fmt: skip
    lines = [*sorted(f"{url}\tmy-list\n" for url in urls), "nonsense\n"]
    (tmp_path / "urls-0000.tsv").write_text("".join(lines))
    return files_in(tmp_path, "first")


def files_in(folder, name):
    out = folder / name
    return FetchFiles(folder / "urls-0000.tsv", out / "x.warc.gz", out / "x.outcomes.jsonl.zst",
                      out / "rejected.jsonl.zst", out / "stats.json", out / "work")  # fmt: skip


def run(files, site, **settings):
    chosen = Fetch(serve=str(site), **{"delay": 0.0, "backoff": 0.0, **settings})
    fetch_shard(files, chosen, serve_folder)


def outcomes(files):
    found = list(read_jsonl(files.outcomes))
    for outcome in found:
        outcome.pop("milliseconds", None)
    return found


def test_every_url_has_its_outcome_and_the_counts_add_up(files, site, capsys):
    run(files, site)
    stats = Statistics.load(files.stats)
    assert (stats.stage, stats.unit, stats.read) == ("fetch", "urls", 3 * PAGES + 7)
    assert stats.kept == stats.out == 3 * PAGES + 1
    assert stats.dropped == {"http_404": 1, "not_html": 1, "robots": 1, "dns": 1,
                             "refused_address": 1}  # fmt: skip
    assert stats.errors == {"bad_line": 1}
    rejected = {record["url"]: record for record in read_jsonl(files.rejected)}
    assert len(rejected) == 6
    assert rejected["http://b.test/gone.html"]["reason"] == "http_404"
    assert rejected["nonsense"]["line"] == 3 * PAGES + 7
    assert len(outcomes(files)) == 3 * PAGES + 7
    captured = capsys.readouterr()
    assert captured.out.startswith("fetch: 127 urls in, 121 kept, 121 out")
    assert captured.out.count("\n") == 1


def test_the_archive_has_a_pair_for_each_answer_in_the_lists_order(files, site):
    run(files, site)
    with files.warc.open("rb") as file:
        records = [(one.rec_type, one.rec_headers) for one in ArchiveIterator(file)]
    kinds = [kind for kind, _ in records]
    answered = 3 * PAGES + 2 + 2  # pages, gone and picture, a redirect's two hops
    assert kinds == ["warcinfo"] + ["request", "response"] * answered
    for (_, request), (_, response) in zip(records[1::2], records[2::2], strict=True):
        assert request["WARC-Target-URI"] == response["WARC-Target-URI"]
        assert request["WARC-Concurrent-To"] == response["WARC-Record-ID"]
        assert response["X-Source"] == "my-list"
        assert response["WARC-IP-Address"] == "127.0.0.1"
    listed = [headers["X-Requested-URL"] for _, headers in records[1::2]]
    assert listed == sorted(listed)
    outcomes = Counter(one.outcome for one in read_responses(files.warc, 1 << 20))
    assert outcomes == {"kept": 3 * PAGES + 1, "http_404": 1, "not_html": 1, None: 1}
    hops = [
        one["WARC-Target-URI"] for _, one in records if "moved" in (one["X-Requested-URL"] or "")
    ]
    assert hops[::2] == ["http://c.test/moved", "http://a.test/000.html"]


def test_another_reader_sees_the_same_archive(files, site):
    run(files, site)
    with files.warc.open("rb") as file:
        found = [(one.headers["X-Requested-URL"], one.http_headers.status_code, one.reader.read())
                 for one in FastArchiveIterator(file, record_types=WarcRecordType.response,
                                                verify_digests=True)]  # fmt: skip
    own = [(one.requested_url, one.status, one.payload)
           for one in read_responses(files.warc, 1 << 20)]  # fmt: skip
    assert found == own


def test_another_pace_gives_the_same_outcomes_and_documents(files, site, tmp_path):
    run(files, site, concurrency=64, per_host=8)
    other = files_in(tmp_path, "second")
    run(other, site, concurrency=1, per_host=1)
    assert outcomes(files) == outcomes(other)

    def pages(path):
        return [(one.url, one.requested_url, one.status, one.payload)
                for one in read_responses(path, 1 << 20)]  # fmt: skip

    assert pages(files.warc) == pages(other.warc)


def test_a_crawl_of_real_hosts_says_whose_it_is(files):
    with pytest.raises(ConfigError, match=r"fetch\.contact"):
        fetch_shard(files, Fetch(), serve_folder)
    assert not files.warc.exists()


def test_a_served_folder_that_is_not_there_is_named(files, tmp_path):
    with pytest.raises(InputError, match="absent: no such folder"):
        run(files, tmp_path / "absent")


def test_a_second_copy_finds_the_work_done_and_a_missing_result_is_made_again(files, site, capsys):
    run(files, site)
    before = files.warc.stat()
    run(files, site)
    assert files.warc.stat() == before
    files.warc.unlink()
    run(files, site)
    assert files.warc.exists()
    assert capsys.readouterr().out.count("\n") == 2


def test_a_crawl_whose_work_folder_was_taken_over_stops(files, site, monkeypatch):
    def lost(work):
        raise LeaseError("taken over")

    monkeypatch.setattr("web2gpt.fetch.crawl.LEASE_CHECK", 0.01)
    monkeypatch.setattr("web2gpt.io.work.WorkFolder.check", lost)
    with pytest.raises(LeaseError, match="taken over"):
        run(files, site, delay=0.2)
    assert not files.warc.exists()


def test_outcomes_hold_what_a_reader_wants_to_know(files, site):
    run(files, site)
    moved = next(one for one in outcomes(files) if one["url"] == "http://c.test/moved")
    assert moved == {
        "url": "http://c.test/moved",
        "source": "my-list",
        "outcome": "kept",
        "status": 200,
        "final_url": "http://a.test/000.html",
        "redirects": 1,
        "content_type": "text/html",
        "bytes": len("<p>a.test 0</p>" * 50),
    }
    assert orjson.loads(files.stats.read_bytes())["figures"]["page_bytes"] > 0
