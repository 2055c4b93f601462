"""Our archives are read by others' software, and others' archives by ours, damaged or not."""

import gzip
from io import BytesIO

import brotli
import pytest
import zstandard
from fastwarc.warc import ArchiveIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.checker import Checker
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from web2gpt.errors import InputError
from web2gpt.io.warc import (
    BadRecord,
    digest,
    payload_headers,
    read_responses,
    record,
    warcinfo,
)

PAGE = b"<p>gr\xc3\xbc\xc3\x9fe</p>"
RAW = ((b"Content-Type", b"text/html; charset=utf-8"), (b"Content-Encoding", b"br"),
       (b"Content-Length", b"9999"), (b"Transfer-Encoding", b"chunked"))  # fmt: skip


def our_response(url="http://site.test/", body=PAGE, **fields):
    block = b"HTTP/1.1 200 OK\r\n" + payload_headers(RAW, len(body)) + b"\r\n" + body
    about = {"WARC-Type": "response", "WARC-Record-ID": f"<urn:uuid:{url}>",
             "WARC-Date": "2026-01-01T00:00:00.000000Z", "WARC-Target-URI": url,
             **fields, "Content-Type": "application/http; msgtype=response"}  # fmt: skip
    return record(about, block, 3)


def foreign_response(body=PAGE, fields=(), url="http://foreign.test/"):
    stream = BytesIO()
    writer = WARCWriter(stream, gzip=True)
    http = StatusAndHeaders("200 OK", [("Content-Type", "text/html"), *fields], "HTTP/1.1")
    writer.write_record(
        writer.create_warc_record(url, "response", BytesIO(body), http_headers=http)
    )
    return stream.getvalue()


def read(tmp_path, content, max_bytes=1000, name="x.warc.gz"):
    path = tmp_path / name
    path.write_bytes(content)
    return list(read_responses(path, max_bytes))


def test_each_record_is_one_gzip_member_of_the_same_bytes():
    made = our_response()
    assert gzip.decompress(made).startswith(b"WARC/1.1\r\nWARC-Type: response\r\n")
    assert made == our_response()


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "ours.warc.gz"
    info = warcinfo(path.name, {"software": "web2gpt", "operator": "me\r\nWARC-Type: evil"}, 3)
    path.write_bytes(info + our_response() + our_response("http://site.test/2", b""))
    return path


def test_warcio_reads_our_archive(archive):
    with archive.open("rb") as file:
        records = [
            (found.rec_type, found.content_stream().read()) for found in WarcioIterator(file)
        ]
    assert [kind for kind, _ in records] == ["warcinfo", "response", "response"]
    assert records[0][1] == b"software: web2gpt\r\noperator: me WARC-Type: evil\r\n"
    assert [body for _, body in records[1:]] == [PAGE, b""]


def test_warcio_finds_digests_and_lengths_right(archive, capsys):
    checker = Checker(type("Arguments", (), {"inputs": [str(archive)], "verbose": True}))
    checker.process_all()
    assert checker.exit_value == 0
    assert "digest failed" not in capsys.readouterr().out


def test_fastwarc_reads_our_archive(archive):
    with archive.open("rb") as file:
        found = [
            (one.headers["WARC-Target-URI"], one.reader.read(), one.http_headers.asdict())
            for one in ArchiveIterator(file, parse_http=True, auto_decode="all")
            if one.is_http
        ]
    assert [(url, body) for url, body, _ in found] == [
        ("http://site.test/", PAGE), ("http://site.test/2", b"")]  # fmt: skip
    assert found[0][2] == {
        "Content-Type": "text/html; charset=utf-8",
        "X-Crawler-Content-Encoding": "br",
        "X-Crawler-Content-Length": "9999",
        "X-Crawler-Transfer-Encoding": "chunked",
        "Content-Length": str(len(PAGE)),
    }


def test_digests_are_sha1_in_base_32():
    assert digest(b"") == "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"  # as archives have it


def test_our_responses_are_read_back(tmp_path):
    fields = {"X-Requested-URL": "http://a.test/", "X-Source": "demo", "WARC-Truncated": "length"}
    first, second = our_response(**fields), our_response("http://site.test/2")
    one, two = read(tmp_path, first + second)
    assert (one.requested_url, one.source, one.truncated) == ("http://a.test/", "demo", "length")
    assert (one.url, one.status, one.payload) == ("http://site.test/", 200, PAGE)
    assert (one.content_type, one.charset) == ("text/html", "utf-8")
    assert (one.offset, two.offset, two.requested_url) == (0, len(first), None)


@pytest.mark.parametrize(("coding", "encode"), [("gzip", gzip.compress), ("br", brotli.compress)])
def test_content_coding_of_foreign_archives_is_undone(tmp_path, coding, encode):
    (found,) = read(tmp_path, foreign_response(encode(PAGE), [("Content-Encoding", coding)]))
    assert found.payload == PAGE


def test_chunks_are_joined_where_there_are_some(tmp_path):
    chunked = [("Transfer-Encoding", "chunked")]
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(PAGE), PAGE)
    (found,) = read(tmp_path, foreign_response(body, chunked))
    assert found.payload == PAGE
    (found,) = read(tmp_path, foreign_response(PAGE, chunked))
    assert found.payload == PAGE


def test_a_bomb_and_a_large_page_cost_a_record_each(tmp_path):
    bomb = foreign_response(gzip.compress(bytes(10_000_000)), [("Content-Encoding", "gzip")])
    large = foreign_response(bytes(1_100_000))
    found = read(tmp_path, bomb + large + our_response(), max_bytes=20_000)
    assert [one.reason for one in found[:2]] == ["too_large", "too_large"]
    assert found[1].url == "http://foreign.test/" and found[1].offset == len(bomb)
    assert found[2].payload == PAGE


def test_damage_in_the_middle_costs_that_record(tmp_path):
    a, b, c = our_response(), our_response("http://site.test/b", bytes(range(256))), our_response()
    broken = bytearray(b)
    broken[len(b) // 2] ^= 0xFF
    found = read(tmp_path, a + broken + c)
    assert [type(one) is BadRecord for one in found] == [False, True, False]
    assert (found[1].offset, found[1].reason) == (len(a), "broken_record")
    assert found[2].offset == len(a + b)


def test_garbage_between_records_is_told_once(tmp_path):
    a, c = our_response(), our_response("http://site.test/c")
    found = read(tmp_path, a + b"garbage" * 9000 + c)
    assert [type(one) is BadRecord for one in found] == [False, True, False]


@pytest.mark.parametrize("cut", [1, 5, 30, 100, 200])
def test_a_record_that_breaks_off_is_bad(tmp_path, cut):
    a, b = our_response(), our_response("http://site.test/b", bytes(range(256)))
    found = read(tmp_path, a + b[:-cut])
    assert found[0].payload == PAGE
    assert len(found) == 2 and (cut < 30 or isinstance(found[1], BadRecord))


@pytest.mark.parametrize(
    ("name", "pack"),
    [("x.warc", bytes), ("x.warc.zst", zstandard.compress), ("one-stream.warc.gz", gzip.compress)],
)
def test_other_packings_are_read(tmp_path, name, pack):
    plain = gzip.decompress(our_response()) + gzip.decompress(our_response("http://site.test/2"))
    assert [one.url for one in read(tmp_path, pack(plain), name=name)] == [
        "http://site.test/", "http://site.test/2"]  # fmt: skip


def test_an_empty_file_has_no_records_and_a_missing_one_is_named(tmp_path):
    assert read(tmp_path, b"") == []
    with pytest.raises(InputError, match=r"absent\.warc"):
        list(read_responses(tmp_path / "absent.warc", 1000))
