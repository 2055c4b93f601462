"""Whatever a server does costs one URL, within its limits, under its right name."""

import asyncio
import gzip
import zlib
from contextlib import suppress
from itertools import pairwise

import brotli
import pytest

HELLO = b"<p>hello</p>"


def test_a_page_is_kept_with_its_facts(web, answer):
    fetched, server = web({"/page": answer(HELLO)}, contact="me@example.org")
    outcome = fetched.outcome
    assert (outcome.outcome, outcome.status, outcome.bytes) == ("kept", 200, len(HELLO))
    assert outcome.content_type == "text/html"
    assert outcome.final_url == outcome.url == "http://site.test/page"
    head = server.heads[-1]
    assert b"User-Agent: webtogpt/" in head and b"(+me@example.org)" in head
    assert b"Host: site.test\r\n" in head and b"Cookie" not in head


@pytest.mark.parametrize(
    ("coding", "encode"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("br", brotli.compress),
     ("deflate", lambda data: zlib.compress(data, wbits=-15))],
)  # fmt: skip
def test_content_codings_are_undone(web, answer, coding, encode):
    fetched, _ = web({"/page": answer(encode(HELLO), fields=[f"Content-Encoding: {coding}"])})
    assert fetched.outcome.outcome == "kept"
    assert fetched.outcome.bytes == len(HELLO)


@pytest.mark.parametrize(
    ("coding", "encode"),
    [("gzip", gzip.compress), ("br", lambda data: brotli.compress(data, quality=5))],
    ids=["gzip", "br"],
)
def test_a_bomb_is_cut_off(web, answer, coding, encode):
    bomb = encode(bytes(60_000_000))
    assert len(bomb) < 60_100
    fetched, _ = web({"/page": answer(bomb, fields=[f"Content-Encoding: {coding}"])})
    assert fetched.outcome.outcome == "too_large"


def sending(*pieces, pause=0.0, forever=False):
    async def act(head, writer):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        while forever:
            writer.write(pieces[-1])
            await writer.drain()
            await asyncio.sleep(pause)

    return act


async def silence(head, writer):
    with suppress(asyncio.CancelledError):  # the loop ends first
        await asyncio.sleep(30)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CASES = {
    "silence": (silence, "timeout"),
    "one byte now and then": (sending(HEAD + b"\r\n", b"a", pause=0.05, forever=True), "timeout"),
    "stall inside the body": (sending(HEAD + b"Content-Length: 9\r\n\r\nabc", pause=5), "timeout"),
    "endless body": (sending(HEAD + b"\r\n", bytes(10_000), forever=True), "too_large"),
    "announced too large": (sending(HEAD + b"Content-Length: 100001\r\n\r\n"), "too_large"),
    "closed before an answer": (sending(), "reset"),
    "closed inside the head": (sending(HEAD), "reset"),
    "closed inside the body": (sending(HEAD + b"Content-Length: 9\r\n\r\nabc"), "incomplete"),
    "garbage for chunks": (
        sending(HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n"), "bad_http"),
    "chunks that break off": (
        sending(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"), "incomplete"),
    "no HTTP at all": (sending(b"SSH-2.0-OpenSSH_9.9\r\n\r\n"), "bad_http"),
    "64 kB in a header": (
        sending(HEAD + b"X-Long: " + b"a" * 65536 + b"\r\n\r\n"), "header_too_large"),
    "false coding": (
        sending(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"), "bad_encoding"),
    "a coding of the transfer": (
        sending(HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n17\r\n"
                + gzip.compress(b"abc", mtime=0) + b"\r\n0\r\n\r\n"), "kept"),
    "only interim answers": (
        sending(b"HTTP/1.1 100 Continue\r\n\r\n" * 50, forever=True), "timeout"),
    "a status of zero": (sending(b"HTTP/1.1 000 Zero\r\nContent-Length: 0\r\n\r\n"), "http_0"),
    "a NUL in a header": (sending(HEAD + b"X: a\0b\r\n\r\nabc"), "bad_http"),
    "two lengths": (
        sending(HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"), "bad_http"),
    "a length and chunks": (
        sending(HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        "bad_http"),
    "an answer without a head": (sending(b"<p>hello</p>"), "bad_http"),
    "unknown coding": (
        sending(HEAD + b"Content-Encoding: lzh\r\nContent-Length: 3\r\n\r\nabc"), "bad_encoding"),
    "a picture": (sending(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nabc"), "not_html"),
    "no type": (sending(b"HTTP/1.1 200 OK\r\n\r\nabc"), "not_html"),
    "not there": (sending(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"), "http_410"),
    "longer than it says": (
        sending(HEAD + b"Content-Length: 3\r\n\r\nabcdef"), "bad_http"),
    "HTTP/1.0": (sending(HEAD.replace(b"1.1", b"1.0") + b"\r\nabc"), "kept"),
    "a wrong charset": (
        sending(HEAD.replace(b"html", b"html; charset=utf-99") + b"\r\na\xff\xfe"), "kept"),
    "4,600 header fields": (
        sending(HEAD + b"X-Short: abc\r\n" * 4600 + b"\r\n"), "bad_http"),
    "chunks": (sending(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), "kept"),
}  # fmt: skip


@pytest.mark.parametrize(("act", "outcome"), CASES.values(), ids=CASES.keys())
def test_each_trouble_has_its_name(web, act, outcome):
    fetched, server = web({"/page": act})
    assert fetched.outcome.outcome == outcome
    assert server.requests["/page"] <= 1 + (outcome == "reset")  # aiohttp: stale connections
    if outcome == "kept":
        assert fetched.outcome.bytes == 3


def test_a_failure_that_passes_is_tried_again(web, answer):
    calls = []

    async def second_time(head, writer):
        calls.append(1)
        writer.write(answer() if len(calls) > 1 else answer(b"", "503 Busy"))
        await writer.drain()

    fetched, server = web({"/page": second_time}, retries=2)
    assert fetched.outcome.outcome == "kept"
    assert server.requests["/page"] == 2


def test_retries_end(web, answer):
    fetched, server = web({"/page": answer(b"", "503 Busy")}, retries=2)
    assert fetched.outcome.outcome == "http_503"
    assert server.requests["/page"] == 3


def test_retry_after_is_honoured_up_to_the_cap(web, answer):
    moments = []

    async def busy(head, writer):
        moments.append(asyncio.get_running_loop().time())
        writer.write(answer(b"", "429 Slow", ["Retry-After: 3600"]))
        await writer.drain()

    fetched, _ = web({"/page": busy}, retries=1, max_wait=0.25)
    assert fetched.outcome.outcome == "http_429"
    assert moments[1] - moments[0] >= 0.25


def test_a_redirect_is_followed_and_every_hop_archived(web, answer):
    pages = {
        "/page": answer(b"", "301 Moved", ["Location: ../next?q=1#part"]),
        "/next?q=1": answer(b"", "302 Found", ["Location: http://other.test/end"]),
        "/end": answer(),
    }
    fetched, _ = web(pages)
    assert (fetched.outcome.outcome, fetched.outcome.redirects) == ("kept", 2)
    assert fetched.outcome.final_url == "http://other.test/end"


REDIRECTS = {
    "to itself": ("http://site.test/page", "redirect_loop"),
    "to metadata": ("http://169.254.169.254/latest", "refused_address"),
    "to loopback": ("http://127.0.0.1/", "refused_address"),
    "to decimal loopback": ("http://2130706433/", "refused_address"),
    "to v6 loopback": ("http://[::1]/", "refused_address"),
    "to a file": ("file:///etc/passwd", "refused_scheme"),
    "to no URL": ("http://[", "bad_redirect"),
    "to nowhere": ("", "bad_redirect"),
    "to no port": ("http://site.test:99999/", "bad_redirect"),
    "to itself, by backslashes": (r"\\site.test\page", "redirect_loop"),
    "to script": ("javascript:1", "refused_scheme"),
    "to v4 in v6 loopback": ("http://[::ffff:7f00:1]/", "refused_address"),
    "to an unknown host": ("http://nowhere.test/", "dns"),
}


@pytest.mark.parametrize(("target", "outcome"), REDIRECTS.values(), ids=REDIRECTS.keys())
def test_a_redirect_is_checked_like_a_url(web, answer, target, outcome):
    fetched, _ = web({"/page": answer(b"", "302 Found", [f"Location: {target}"])})
    assert fetched.outcome.outcome == outcome


@pytest.mark.parametrize(("hops", "outcome"), [(3, "kept"), (4, "too_many_redirects")])
def test_a_chain_of_redirects_has_an_end(web, answer, hops, outcome):
    pages = {f"/{n}": answer(b"", "302 Found", [f"Location: /{n + 1}"]) for n in range(hops)}
    fetched, server = web({**pages, f"/{hops}": answer()}, "/0", max_redirects=3)
    assert fetched.outcome.outcome == outcome
    assert server.requests["/4"] == 0


def test_stuck_hosts_neither_add_up_nor_hold_up_the_others(
    server_class, fetch_as_they_come, answer
):
    """Many more hosts are stuck than requests may be under way, and they come first."""
    stuck = [f"http://stuck{n}.test/page" for n in range(200)]
    quick = [f"http://site.test/{n}" for n in range(40)]
    hosts = [url.split("/")[2] for url in [*stuck, quick[0]]]
    ended = []

    async def run():
        pages = {"/page": silence} | {f"/{n}": answer() for n in range(40)}
        async with server_class(pages) as server:
            limits = {"timeout": 3.0, "idle_timeout": 9.0, "first_byte_timeout": 9.0}
            settings = {"patience": 0.05, "concurrency": 32, "hosts": hosts, **limits}
            start = asyncio.get_running_loop().time()
            async for fetched in fetch_as_they_come(server, [*stuck, *quick], **settings):
                ended.append(fetched.outcome)
            return asyncio.get_running_loop().time() - start

    seconds = asyncio.run(run())
    assert [one.outcome for one in ended] == ["kept"] * 40 + ["timeout"] * 200
    assert seconds < 3.0 + 5.0


def test_no_more_requests_at_once_than_allowed(server_class, fetch_all, answer):
    at_once = {"now": 0, "most": 0}

    async def slow(head, writer):
        at_once["now"] += 1
        at_once["most"] = max(at_once["most"], at_once["now"])
        await asyncio.sleep(0.02)
        at_once["now"] -= 1
        writer.write(answer())
        await writer.drain()

    async def run():
        paths = [f"/{n}" for n in range(12)]
        async with server_class(dict.fromkeys(paths, slow)) as server:
            return await fetch_all(server, [f"http://site.test{path}" for path in paths])

    assert {page.outcome.outcome for page in asyncio.run(run())} == {"kept"}
    assert at_once["most"] == 2  # per_host


def test_requests_to_one_host_keep_their_distance(server_class, fetch_all, answer):
    moments = []

    async def note(head, writer):
        moments.append(asyncio.get_running_loop().time())
        writer.write(answer())
        await writer.drain()

    async def run():
        paths = [f"/{n}" for n in range(4)]
        async with server_class(dict.fromkeys(paths, note)) as server:
            await fetch_all(server, [f"http://site.test{path}" for path in paths], delay=0.1)

    asyncio.run(run())
    gaps = [later - sooner for sooner, later in pairwise(moments)]
    assert min(gaps) > 0.05  # less a slow machine's jitter between client and server
    assert sum(gaps) > 0.25


def test_an_exception_that_nobody_foresaw_costs_its_url_alone(web, answer, monkeypatch, capsys):
    def stumble(exchange, unwanted, agent):
        raise RecursionError("too deep")

    monkeypatch.setattr("web2gpt.fetch.page.refused_by_page", stumble)
    fetched, _ = web({"/page": answer()})
    assert (fetched.outcome.outcome, fetched.outcome.status, fetched.records) == (
        "unexpected",
        None,
        b"",
    )
    assert "http://site.test/page: RecursionError('too deep')" in capsys.readouterr().err
