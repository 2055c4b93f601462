"""Which addresses the crawler may connect to.

Invariant: no socket is opened to an address that is not public, whatever a URL, a redirect or a
DNS answer says. What is public follows the IANA special-purpose registries (RFC 6890 and its
updates); all of IPv6 outside 2000::/3 is refused, and with it every form that carries an IPv4
address inside (mapped, compatible, NAT64), and 6to4 and Teredo within it.
"""

import socket
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from aiohttp import AddrInfoType

SPECIAL_IPV4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, cloud metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
PUBLIC_IPV6 = IPv6Network("2000::/3")
SPECIAL_IPV6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)


class RefusedAddressError(OSError):
    """A connection to an address that the crawler must not contact."""


class AddressGuard:
    """Says which addresses may be contacted.

    ``networks`` are allowed by the configuration though not public. With ``only`` (address and
    port) nothing but that one server may be contacted.
    """

    def __init__(self, networks: Iterable[str] = (), only: tuple[str, int] | None = None):
        self._networks = [ip_network(network) for network in networks]
        self._only = only
        self._proxies = set[tuple[str, int]]()

    def allows(self, address: str, port: int) -> bool:
        """Whether a connection may be made; False for what is no address at all."""
        if self._only is not None:
            return (address, port) == self._only
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        if any(parsed in network for network in self._networks):
            return True
        if isinstance(parsed, IPv6Address):
            special = any(parsed in network for network in SPECIAL_IPV6)
            return parsed in PUBLIC_IPV6 and not special and parsed.scope_id is None
        return not any(parsed in network for network in SPECIAL_IPV4)

    def check(self, address: str, port: int) -> None:
        """Raise ``RefusedAddressError`` unless the address may be contacted."""
        if not self.allows(address, port):
            raise RefusedAddressError(f"{address} port {port} is not public")

    def admit_proxy(self, address: str, port: int) -> None:
        """Let sockets be opened to a proxy; URLs may not name it all the same."""
        self._proxies.add((address, port))

    def open_socket(self, info: AddrInfoType) -> socket.socket:
        """The connector's socket factory, and so the last gate: no way leads around it."""
        family, kind, protocol, _, address = info
        endpoint = str(address[0]), int(address[1])
        if endpoint not in self._proxies:
            self.check(*endpoint)
        return socket.socket(family, kind, protocol)
