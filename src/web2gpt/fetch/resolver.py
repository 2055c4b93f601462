"""From host names to addresses that may be contacted.

The connection is made to the very addresses that were checked here, so a second DNS answer cannot
change them. A proxy's own name is the one exception: whoever runs the crawl has named it, and the
client asks for it only to pass requests on. While a folder is served in place of the web, its host
names are the only ones known.
"""

import asyncio
import socket
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from aiohttp.abc import AbstractResolver, ResolveResult

from web2gpt.fetch.addresses import AddressGuard, RefusedAddressError

THREADS = 32  # lookups at once: a dead name server holds a thread for many seconds


@dataclass(frozen=True)
class Served:
    """A site served on this machine in place of real hosts."""

    hosts: Collection[str]
    address: str
    port: int


class GuardedResolver(AbstractResolver):
    """aiohttp's resolver interface, over the system's resolver and the guard."""

    def __init__(
        self,
        guard: AddressGuard,
        served: Served | None = None,
        proxies: frozenset[tuple[str, int]] = frozenset(),
    ):
        self._guard, self._served, self._proxies = guard, served, proxies
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses of ``host`` that may be contacted.

        Raises ``RefusedAddressError`` if there are others only, ``socket.gaierror`` if none.
        """
        if self._served is not None:
            if host.rstrip(".") not in self._served.hosts:
                raise socket.gaierror(socket.EAI_NONAME, f"{host} is not among the served hosts")
            return [_result(host, self._served.address, self._served.port, socket.AF_INET)]
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host, port, family)
        if (host, port) in self._proxies:
            for _, address in found:
                self._guard.admit_proxy(address, port)
            return [_result(host, address, port, kind) for kind, address in found]
        allowed = [
            _result(host, address, port, kind)
            for kind, address in found
            if self._guard.allows(address, port)
        ]
        if not allowed:
            raise RefusedAddressError(f"{host} has no public address")
        return allowed

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(
    host: str, port: int, family: socket.AddressFamily
) -> list[tuple[socket.AddressFamily, str]]:
    infos = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [(kind, str(address[0])) for kind, _, _, _, address in infos]


def _result(host: str, address: str, port: int, family: socket.AddressFamily) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=family,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
