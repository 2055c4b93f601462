"""From WARC files of any origin to documents: what is taken, what is dropped, what is an error."""

import gzip
import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from web2gpt.cli import app
from web2gpt.io.atomic import read_json
from web2gpt.io.shards import read_jsonl
from web2gpt.web.ids import document_id

HTML = [("Content-Type", "text/html; charset=utf-8")]


def prose(seed: int) -> str:
    """Paragraphs that no two pages share."""
    draw = random.Random(seed)
    words = ("river", "stone", "winter", "the", "of", "mill", "and", "valley", "wrote", "people")
    lines = [" ".join(draw.choice(words) for _ in range(30)).capitalize() for _ in range(4)]
    return "".join(f"<p>{line}.</p>" for line in lines)


def html(seed: int, **attributes: str) -> bytes:
    head = f'<html lang="en"><head><title>Title {seed}</title></head>'
    return f"{head}<body><article>{prose(seed)}</article></body></html>".encode()


class Archive:
    """A WARC file made by warcio, record by record."""

    def __init__(self, *, compressed: bool = True):
        self.buffer = io.BytesIO()
        self._writer = WARCWriter(self.buffer, gzip=compressed)

    def response(
        self,
        url: str,
        body: bytes,
        *,
        status: str = "200 OK",
        http: list[tuple[str, str]] = HTML,
        fields: dict[str, str] | None = None,
        kind: str = "response",
    ) -> "Archive":
        given = {"WARC-Date": "2026-03-04T05:06:07Z", **(fields or {})}
        record = self._writer.create_warc_record(
            url, kind, payload=io.BytesIO(body), warc_headers_dict=given,
            http_headers=StatusAndHeaders(status, http, protocol="HTTP/1.1"),
        )  # fmt: skip
        self._writer.write_record(record)
        return self

    def other(self, kind: str) -> "Archive":
        record = self._writer.create_warc_record(
            "http://a.example/",
            kind,
            payload=io.BytesIO(b"a: b\r\n"),
            warc_content_type="text/plain",
        )
        self._writer.write_record(record)
        return self

    @property
    def content(self) -> bytes:
        return self.buffer.getvalue()


Run = Callable[..., tuple[list[Any], list[Any], Any]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Extract archives given as bytes; documents, rejected records, statistics."""
    count = iter(range(100))

    def extract(
        *archives: bytes, source: str | None = "cc", flags: tuple[str, ...] = ()
    ) -> tuple[list[Any], list[Any], Any]:
        folder = tmp_path / str(next(count))
        folder.mkdir()
        inputs = []
        for number, content in enumerate(archives):
            path = folder / f"{number}.warc.gz"
            path.write_bytes(content)
            inputs += ["--input", str(path)]
        names = ("documents", "rejected", "stats", "work")
        files = [word for name in names for word in (f"--{name}", str(folder / f"{name}.zst"))]
        fixed = ["extract", "--kind", "warc", "--extractor", "resiliparse"]
        fixed += ["--source", source] if source else []
        CliRunner().invoke(app, [*fixed, *inputs, *files, *flags], catch_exceptions=False)
        results = (list(read_jsonl(folder / f"{name}.zst")) for name in names[:2])
        return (*results, read_json(folder / "stats.zst"))

    return extract


def test_a_page_becomes_a_document_with_what_it_says_of_itself(run: Run) -> None:
    fields = {"WARC-Record-ID": "<urn:uuid:7>"}
    content = Archive().response("http://a.example/7", html(7), fields=fields).content
    documents, rejected, stats = run(content)
    (document,) = documents
    assert document["id"] == document_id("cc", "<urn:uuid:7>")
    assert document["url"] == "http://a.example/7"
    assert document["source"] == "cc"
    assert document["title"] == "Title 7"
    assert document["language"] == "en"
    assert document["text"].split() == prose(7).replace("<p>", " ").replace("</p>", " ").split()
    assert rejected == []
    assert (stats["unit"], stats["in"], stats["kept"], stats["out"]) == ("pages", 1, 1, 1)


def test_the_date_of_the_crawl_is_carried_when_asked_for(run: Run) -> None:
    content = Archive().response("http://a.example/7", html(7)).content
    assert "crawled" not in run(content)[0][0]
    (document,), *_ = run(content, flags=("--crawl-date",))
    assert document["crawled"] == "2026-03-04T05:06:07Z"


def test_our_own_archives_name_the_url_of_the_list_and_its_source(run: Run) -> None:
    fields = {"X-Requested-URL": "http://a.example/asked", "X-Source": "list"}
    archive = Archive()
    archive.response("http://a.example/asked", b"", status="302 Found", fields=fields)
    archive.response("http://b.example/got", html(1), fields=fields)
    documents, rejected, stats = run(archive.content, source=None)
    (document,) = documents
    assert document["id"] == document_id("list", "http://a.example/asked")
    assert (document["url"], document["source"]) == ("http://a.example/asked", "list")
    assert rejected == [], "the fetcher has told of the redirect"
    assert (stats["in"], stats["figures"]["other_answers"]) == (1, 1)


def test_an_archive_of_a_named_source_is_not_believed_about_its_source(run: Run) -> None:
    fields = {"X-Requested-URL": "http://a.example/asked", "X-Source": "list"}
    fields["WARC-Record-ID"] = "<urn:uuid:7>"
    (document,), *_ = run(
        Archive().response("http://b.example/got", html(1), fields=fields).content
    )
    assert document["id"] == document_id("cc", "<urn:uuid:7>")
    assert (document["url"], document["source"]) == ("http://b.example/got", "cc")


def test_only_html_answers_with_status_200_are_taken(run: Run) -> None:
    archive = Archive().other("warcinfo").other("metadata")
    archive.response("http://a.example/1", html(1))
    archive.response("http://a.example/2", b"gone", status="404 Not Found")
    archive.response("http://a.example/3", b"%PDF-", http=[("Content-Type", "application/pdf")])
    archive.response(
        "http://a.example/4", html(4), http=[("content-type", "application/xhtml+xml")]
    )
    archive.response("http://a.example/5", b"  \n<!DOCTYPE html>" + html(5), http=[])
    archive.response("http://a.example/6", b"plain words", http=[])
    archive.response("http://a.example/7", b"<html><body></body></html>")
    archive.response("http://a.example/8", b"", kind="request")
    documents, _, stats = run(archive.content)
    assert [document["url"][-1] for document in documents] == ["1", "4", "5"]
    assert stats["in"] == 7
    assert stats["dropped"] == {"empty": 1, "http_status": 1, "not_html": 2}
    assert stats["errors"] == {}


def test_charset_of_header_and_content_coding_are_undone(run: Run) -> None:
    page = f"<html><body><article><p>Größe</p>{prose(1)}</article></body></html>"
    fields = [("Content-Type", "text/html; charset=ISO-8859-1"), ("Content-Encoding", "gzip")]
    body = gzip.compress(page.encode("latin-1"))
    documents, _, _ = run(Archive().response("http://a.example/", body, http=fields).content)
    assert documents[0]["text"].startswith("Größe")


def test_second_page_with_an_id_is_an_error_of_that_page(run: Run) -> None:
    fields = {"WARC-Record-ID": "<urn:uuid:1>"}
    archive = Archive()
    for number in (1, 2):
        archive.response(f"http://a.example/{number}", html(number), fields=fields)
    documents, rejected, stats = run(archive.content)
    assert [document["url"] for document in documents] == ["http://a.example/1"]
    assert rejected[0]["url"] == "http://a.example/2"
    assert stats["errors"] == {"duplicate_id": 1}


def test_hostile_pages_cost_only_themselves(run: Run) -> None:
    archive = Archive().response("http://a.example/0", html(0))
    archive.response("http://a.example/1", b"<html><body>" + b"<div>" * 100_000 + b"x")
    archive.response("http://a.example/2", b"<html><p>\0\xff" + html(2))
    archive.response("http://a.example/3", b"<html>" + b" " * 3000 + html(3))
    documents, rejected, stats = run(
        archive.content, flags=("--timeout", "0.5", "--max-bytes", "700000")
    )
    assert [document["url"][-1] for document in documents] == ["0", "2", "3"]
    assert [record["reason"] for record in rejected] == ["timeout"]
    assert stats["errors"] == {"timeout": 1}


def test_the_same_bytes_for_any_number_of_workers(tmp_path: Path, run: Run) -> None:
    archive = Archive()
    for number in range(24):
        archive.response(f"http://a.example/{number}", html(number) * (1 + 40 * (number % 3)))
    run(archive.content, archive.content, flags=("--workers", "1"))
    run(archive.content, archive.content, flags=("--workers", "3"))
    for name in ("documents.zst", "rejected.zst"):
        one, three = ((tmp_path / run / name).read_bytes() for run in "01")
        # The paths of the two runs' inputs differ, but stand in no record here.
        assert one == three


@pytest.mark.parametrize("form", ["member a record", "one member", "plain"])
def test_a_truncated_archive_loses_its_last_record_only(run: Run, form: str) -> None:
    archive = Archive(compressed=form == "member a record")
    for number in range(3):
        archive.response(f"http://a.example/{number}", html(number))
    content = archive.content
    content = gzip.compress(content) if form == "one member" else content
    documents, _, stats = run(content)
    assert len(documents) == 3
    documents, _, stats = run(content[: -len(content) // 6])
    assert [document["url"][-1] for document in documents] == ["0", "1"]
    assert stats["errors"] == {"broken_record": 1}


def test_answers_of_other_protocols_are_no_broken_pages(run: Run) -> None:
    """Heritrix files each look-up of a name as a response."""
    archive = Archive().response("http://a.example/", html(1))
    for uri in ("dns:a.example", "ftp://a.example/x"):
        record = archive._writer.create_warc_record(
            uri, "response", payload=io.BytesIO(b"20260101\na.example. IN A 192.0.2.1\n"),
            warc_content_type="text/dns",
        )  # fmt: skip
        archive._writer.write_record(record)
    _, rejected, stats = run(archive.content)
    assert (stats["in"], stats["kept"], rejected) == (1, 1, [])


def test_a_file_that_is_no_archive_is_said(run: Run) -> None:
    documents, _, stats = run(b"<html>not an archive</html>" * 100)
    assert documents == []
    assert stats["errors"] == {"broken_record": 1}
