"""Killed at any moment, a crawl goes on: nothing archived is fetched again, nothing is lost."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections import Counter

import pytest

from web2gpt.fetch.journal import Journal
from web2gpt.fetch.urllist import UrlList
from web2gpt.io.shards import read_jsonl
from web2gpt.io.statistics import Statistics
from web2gpt.io.warc import read_responses

PAGES = 500
HOSTS = [f"127.0.0.{n}" for n in range(1, 5)]
CONCURRENCY = 8


class CountingServer:
    """One server on several loopback addresses, in a thread; ``reached`` waits for a count."""

    def __init__(self):
        self.requests = Counter()
        self._changed = threading.Condition()
        self._ready = threading.Event()

    def __enter__(self):
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *error):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def reached(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: self.requests.total() >= count, timeout=60)

    async def _run(self):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        servers = [await asyncio.start_server(self._serve, host, 0) for host in HOSTS]
        self.ports = [server.sockets[0].getsockname()[1] for server in servers]
        self._ready.set()
        await self._stop.wait()

    async def _serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                path, host = head.split(" ", 2)[1], head.partition("Host: ")[2].split("\r\n")[0]
                with self._changed:
                    self.requests[f"http://{host}{path}"] += 1
                    self._changed.notify_all()
                await asyncio.sleep(0.002)
                body = f"<p>{path}</p>".encode() * 50 if "page" in path else b""
                status = "200 OK" if body else "404 Not Found"
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def start(folder):
    out = folder / "out"
    return subprocess.Popen(
        [sys.executable, "-m", "web2gpt.cli", "fetch", "--urls", folder / "urls-0000.tsv",
         "--warc", out / "x.warc.gz", "--outcomes", out / "x.outcomes.jsonl.zst",
         "--rejected", out / "rejected.jsonl.zst", "--stats", out / "stats.json",
         "--work", out / "work", "--contact", "test@example.org", "--delay", "0",
         "--allow-networks", "127.0.0.0/8", "--concurrency", str(CONCURRENCY), "--per-host", "2"],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )  # fmt: skip


def archived(folder):
    """The URLs whose records are on disk."""
    urls = UrlList(folder / "urls-0000.tsv")
    with Journal(folder / "out" / "work" / "journal", len(urls)) as journal:
        return [urls[number].url for number in journal.done.nonzero()[0]]


@pytest.mark.parametrize(
    ("pages", "kills"), [(PAGES, 3), pytest.param(5000, 10, marks=pytest.mark.long)]
)
def test_killed_again_and_again_it_fetches_no_archived_page_twice(tmp_path, pages, kills):
    with CountingServer() as server:
        urls = sorted(
            f"http://{host}:{port}/page{n}"
            for host, port in zip(HOSTS, server.ports, strict=True)
            for n in range(pages // len(HOSTS))
        )
        (tmp_path / "urls-0000.tsv").write_text("".join(f"{url}\ttest\n" for url in urls))
        done = {}
        for kill in range(kills):
            crawl = start(tmp_path)
            server.reached((kill + 1) * pages // (kills + 1))
            crawl.send_signal(signal.SIGKILL)
            crawl.wait()
            crawl.stdout.close()
            on_disk = archived(tmp_path)
            assert on_disk
            assert set(done) <= set(on_disk)
            done = {url: server.requests[url] for url in on_disk}
        journal = tmp_path / "out" / "work" / "journal"
        os.truncate(journal, journal.stat().st_size - 3)  # as if torn while writing
        done = {url: server.requests[url] for url in archived(tmp_path)}
        crawl = start(tmp_path)
        output, _ = crawl.communicate()
        assert crawl.returncode == 0
        assert output.startswith(b"fetch: ")

    for url, count in done.items():
        assert server.requests[url] == count
    asked = {url: count for url, count in server.requests.items() if "page" in url}
    assert sum(asked.values()) <= len(urls) + kills * CONCURRENCY + 1
    outcomes = list(read_jsonl(tmp_path / "out" / "x.outcomes.jsonl.zst"))
    assert [outcome["url"] for outcome in outcomes] == urls
    pages_read = list(read_responses(tmp_path / "out" / "x.warc.gz", 1 << 20))
    assert [page.requested_url for page in pages_read] == urls
    stats = Statistics.load(tmp_path / "out" / "stats.json")
    assert stats.read == stats.kept == len(urls)
