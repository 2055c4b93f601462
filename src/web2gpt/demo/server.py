"""A web server for a folder of sites, on a loopback port, for as long as a crawl of it runs.

``folder/<host>/`` holds a host's files by URL path, ``index.html`` for a folder. Lines of its
``_redirects`` read ``FROM TO STATUS``, where TO may be a whole URL. Lines of its ``_generated``
read ``PATH BYTES``: a page of so many bytes, or an ``endless`` one, made up as it is sent. What is
not there is 404.
"""

import mimetypes
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from web2gpt.errors import InputError

ADDRESS = "127.0.0.1"
REDIRECTS, GENERATED = "_redirects", "_generated"
ENDLESS = "endless"
FILLING = b"<p>And so it went on, page after page, as it had begun.</p>\n" * 1000


@dataclass(frozen=True)
class ServedHost:
    """One host: its folder, its redirects by path, and the sizes of its generated pages."""

    folder: Path
    redirects: dict[str, tuple[str, int]]
    generated: dict[str, int | None]  # bytes; None: endless

    def find(self, path: str) -> Path | None:
        """The file for a URL path, never one outside the folder."""
        file = (self.folder / path.lstrip("/")).resolve()
        if file.is_dir():
            file = file / "index.html"
        inside = file.is_relative_to(self.folder.resolve()) and file.name not in (
            REDIRECTS,
            GENERATED,
        )
        return file if inside and file.is_file() else None


@asynccontextmanager
async def serve_folder(folder: Path) -> AsyncIterator[tuple[frozenset[str], str, int]]:
    """Serve ``folder`` while the block runs; yields its host names, address and port."""
    sites = {
        entry.name.lower(): ServedHost(
            entry, _read_redirects(entry / REDIRECTS), _read_generated(entry / GENERATED)
        )
        for entry in sorted(folder.iterdir())
        if entry.is_dir()
    }
    runner = web.ServerRunner(web.Server(_Handler(sites), access_log=None))
    await runner.setup()
    try:
        endpoint = web.TCPSite(runner, ADDRESS, 0, backlog=1024)
        await endpoint.start()
        yield frozenset(sites), ADDRESS, int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


class _Handler:
    def __init__(self, sites: dict[str, ServedHost]):
        self._sites = sites

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        site = self._sites.get(request.host.partition(":")[0].lower())
        if site is None:
            return web.Response(status=404, text="no such host")
        if request.path in site.redirects:
            target, status = site.redirects[request.path]
            return web.Response(status=status, headers={"Location": target})
        if request.path in site.generated:
            return await _generate(request, site.generated[request.path])
        try:
            file = site.find(request.path)
        except (OSError, ValueError):  # a name too long, or with a NUL in it
            file = None
        if file is None:
            return web.Response(status=404, text="no such page")
        return web.Response(body=file.read_bytes(), headers={"Content-Type": _type(file)})


def _type(file: Path) -> str:
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


async def _generate(request: web.BaseRequest, size: int | None) -> web.StreamResponse:
    """Send a page of ``size`` bytes, or send on until the other side has had enough."""
    response = web.StreamResponse(headers={"Content-Type": "text/html; charset=utf-8"})
    response.content_length = size
    with suppress(ConnectionError):
        await response.prepare(request)
        left = size
        while left is None or left > 0:
            piece = FILLING if left is None else FILLING[:left]
            await response.write(piece)
            left = None if left is None else left - len(piece)
        await response.write_eof()
    return response


def _read_redirects(file: Path) -> dict[str, tuple[str, int]]:
    redirects = {}
    for number, fields in _lines(file):
        if len(fields) != 3 or not fields[2].isdecimal():
            raise InputError(f"{file}: line {number} is not 'FROM TO STATUS': {' '.join(fields)!r}")
        redirects[fields[0]] = fields[1], int(fields[2])
    return redirects


def _read_generated(file: Path) -> dict[str, int | None]:
    generated: dict[str, int | None] = {}
    for number, fields in _lines(file):
        if len(fields) != 2 or not (fields[1].isdecimal() or fields[1] == ENDLESS):
            raise InputError(f"{file}: line {number} is not 'PATH BYTES': {' '.join(fields)!r}")
        generated[fields[0]] = None if fields[1] == ENDLESS else int(fields[1])
    return generated


def _lines(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The words of each line, numbered; none if the file is not there."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for number, line in enumerate(lines, 1):
        yield number, line.split()
