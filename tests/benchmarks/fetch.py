"""How fast a shard is fetched, beside aiohttp alone; and what hosts that are stuck cost the others.

    python tests/benchmarks/fetch.py [--pages 5000] [--rounds 5] [--stuck 200]

A server on loopback hands out 30 kB pages of real prose. In each round, one after the other on one
core, the same URLs over 200 connections: aiohttp alone, which reads the pages and forgets them; and
``web2gpt fetch``, which asks for robots.txt, checks, archives and writes outcomes. The server has
another core. Prints a table and one line of JSON; ratios are the median of the rounds.

With ``--stuck``, so many further hosts take a connection and never answer: printed is how much
longer the other hosts' pages take, and how long the whole run takes beyond ``fetch.timeout``.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from pydoc_data.topics import topics

from fastwarc.warc import ArchiveIterator, WarcRecordType

PAGE, PAGES = 30_000, 64  # bytes of a page, and how many different ones there are
CONNECTIONS, PER_HOST = 200, 8
HOSTS = [f"127.0.1.{number}" for number in range(1, 1 + CONNECTIONS // PER_HOST)]
STUCK = "127.0.2."  # addresses that take a connection and never answer
TIMEOUT = 20.0  # fetch.timeout while hosts are stuck


@dataclass(frozen=True)
class Run:
    """One client's run: pages a second by the clock, CPU seconds and peak memory."""

    pages: int
    seconds: float
    cpu: float
    megabytes: float

    @property
    def rate(self) -> float:
        return self.pages / self.seconds

    @property
    def cpu_rate(self) -> float:
        return self.pages / self.cpu


def responses() -> list[bytes]:
    """Whole HTTP responses: pages cut out of Python's language reference."""
    text = "\n".join(topics[name] for name in sorted(topics))
    step = (len(text) - PAGE) // PAGES
    found = []
    for start in range(0, step * PAGES, step):
        paragraphs = text[start : start + PAGE].split("\n\n")
        body = "<p>" + "</p>\n<p>".join(paragraphs) + "</p>"
        content = f"<!DOCTYPE html><title>Page</title>{body}".encode()[:PAGE]
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        found.append(head.encode() + content)
    return found


class PageServer(asyncio.Protocol):
    """The least that a server can do for each request."""

    pages = responses()
    absent = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._number = id(self)
        self._is_stuck = transport.get_extra_info("sockname")[0].startswith(STUCK)

    def data_received(self, data: bytes) -> None:
        if self._is_stuck:
            return
        self._number += 1
        is_page = not data.startswith(b"GET /robots.txt")
        page = self.pages[self._number % PAGES] if is_page else self.absent
        self._transport.write(page)


def serve(pipe: Connection, core: int) -> None:
    os.sched_setaffinity(0, {core})

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(PageServer, "0.0.0.0", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def server(core: int) -> Iterator[int]:
    """A server in a process of its own; yields its port."""
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=serve, args=(theirs, core), daemon=True)
    process.start()
    try:
        yield int(ours.recv())
    finally:
        process.kill()


def measured(command: list[str], pages: int, core: int) -> Run:
    """Run a client on one core."""
    start = time.perf_counter()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(["taskset", "-c", str(core), *command], **quiet)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{command[:4]} ended with {process.returncode}")
    return Run(pages, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


ALONE = """
import asyncio, sys, aiohttp
async def work(session, urls):
    for url in urls:
        async with session.get(url) as response:
            await response.read()
async def main():
    with open(sys.argv[1]) as file:
        urls = iter([line.split("\\t")[0] for line in file])
    connector = aiohttp.TCPConnector(limit=%d)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(work(session, urls) for _ in range(%d)))
asyncio.run(main())
"""


def alone(urls: Path, pages: int, core: int) -> Run:
    """aiohttp alone: pages are read and forgotten."""
    script = ALONE % (CONNECTIONS, CONNECTIONS)
    return measured([sys.executable, "-c", script, str(urls)], pages, core)


def ours(urls: Path, pages: int, core: int, *flags: str) -> tuple[Run, float]:
    """``web2gpt fetch`` as a user calls it; and the seconds from its first page to its last."""
    with tempfile.TemporaryDirectory(dir=urls.parent) as name:
        folder = Path(name)
        command = [
            sys.executable, "-m", "web2gpt.cli", "fetch", "--urls", str(urls),
            "--warc", str(folder / "x.warc.gz"), "--outcomes", str(folder / "x.outcomes.jsonl.zst"),
            "--rejected", str(folder / "r.jsonl.zst"), "--stats", str(folder / "s.json"),
            "--work", str(folder / "work"), "--contact", "bench@example.org", "--delay", "0",
            "--allow-networks", "127.0.0.0/8", "--concurrency", str(CONNECTIONS),
            "--per-host", str(PER_HOST), *flags,
        ]  # fmt: skip
        run = measured(command, pages, core)
        kept = json.loads((folder / "s.json").read_text())["kept"]
        if kept != pages:
            raise SystemExit(f"only {kept} of {pages} pages were kept")
        return run, span(folder / "x.warc.gz")


def span(archive: Path) -> float:
    """Seconds between the first and the last page of an archive, by WARC-Date."""
    with archive.open("rb") as file:
        dates = [record.record_date for record in ArchiveIterator(file, WarcRecordType.response)
                 if record.headers.get("X-Outcome") == "kept"]  # fmt: skip
    return (max(dates) - min(dates)).total_seconds()


def write_list(path: Path, port: int, pages: int, stuck: int = 0) -> None:
    urls = [f"http://{HOSTS[n % len(HOSTS)]}:{port}/page-{n:07d}" for n in range(pages)]
    urls += [f"http://{STUCK}{n}:{port}/page" for n in range(1, stuck + 1)]
    path.write_text("".join(f"{url}\tbench\n" for url in sorted(urls)))


def compare(urls: Path, port: int, pages: int, rounds: int, core: int) -> None:
    """aiohttp alone and web2gpt fetch in turn."""
    write_list(urls, port, pages)
    found: list[tuple[Run, Run]] = []
    for number in range(1, rounds + 1):
        peer, (run, _) = alone(urls, pages, core), ours(urls, pages, core)
        found.append((peer, run))
        for name, one in (("aiohttp alone", peer), ("web2gpt fetch", run)):
            print(f"round {number}: {name} {one.rate:,.0f} pages/s, {one.cpu_rate:,.0f} a CPU "
                  f"second, {one.megabytes:.0f} MB", flush=True)  # fmt: skip
    ratio = statistics.median(run.rate / peer.rate for peer, run in found)
    cpu_ratio = statistics.median(run.cpu_rate / peer.cpu_rate for peer, run in found)
    print(f"median ratio: {ratio:.2f} by the clock, {cpu_ratio:.2f} by CPU time")
    table = [[asdict(peer), asdict(run)] for peer, run in found]
    print(json.dumps({"ratio": ratio, "cpu_ratio": cpu_ratio, "rounds": table}))


def hold_up(urls: Path, port: int, pages: int, stuck: int, core: int) -> None:
    """The same pages without and with hosts that are stuck."""
    flags = ("--timeout", str(TIMEOUT), "--first-byte-timeout", str(TIMEOUT))
    write_list(urls, port, pages)
    _, without = ours(urls, pages, core, *flags)
    write_list(urls, port, pages, stuck)
    run, beside = ours(urls, pages, core, *flags)
    found = {"stuck": stuck, "pages": pages, "seconds_without": without, "seconds_beside": beside,
             "slower": beside / without - 1, "beyond_timeout": run.seconds - TIMEOUT}  # fmt: skip
    print(f"{pages} pages: {without:.1f} s; beside {stuck} stuck hosts {beside:.1f} s "
          f"({found['slower']:+.1%}); all over {found['beyond_timeout']:.1f} s after the "
          f"timeout of {TIMEOUT:.0f} s")  # fmt: skip
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stuck", type=int, default=0)
    options = parser.parse_args()
    client_core, server_core = sorted(os.sched_getaffinity(0))[:2]
    with server(server_core) as port, tempfile.TemporaryDirectory() as folder:
        urls = Path(folder) / "urls-0000.tsv"
        if options.stuck:
            hold_up(urls, port, options.pages, options.stuck, client_core)
        else:
            compare(urls, port, options.pages, options.rounds, client_core)


if __name__ == "__main__":
    main()
