"""Proxies named by the environment: http_proxy, https_proxy and no_proxy, as everywhere.

Through a proxy it is the proxy that resolves names and connects, so the guard can check only what
the URL says: an address, or a name that no public host has. Refusing private addresses behind
public names is then the proxy's part. What the environment names may itself be on a private
network; nothing but requests to be passed on is ever sent there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib import request

from aiohttp import encode_basic_auth
from yarl import URL

from web2gpt.errors import ConfigError

SPECIAL_NAMES = ("localhost", "local", "internal", "home.arpa")
"""Names under which no public host is found (RFC 6761, 6762, 8375; ICANN's ``internal``)."""


@dataclass(frozen=True)
class Proxy:
    """``headers`` hold the credentials; they are sent to the proxy alone, and archived nowhere."""

    url: URL
    headers: Mapping[str, str]

    @classmethod
    def parse(cls, name: str, text: str) -> Self:
        url = URL(text if "://" in text else f"http://{text}")
        if url.scheme not in ("http", "https") or not url.host:
            raise ConfigError(
                f"{name}: {url.scheme} proxies are not supported; name one such as "
                "http://proxy.example:3128, or set fetch.proxies: false"
            )
        secret = encode_basic_auth(url.user, url.password or "") if url.user else None
        return cls(url.with_user(None), {"Proxy-Authorization": secret} if secret else {})

    def options(self, scheme: str) -> dict[str, Any]:
        """What aiohttp's request for a URL of this scheme is to be given."""
        field = "proxy_headers" if scheme == "https" else "headers"
        return {"proxy": self.url, field: self.headers}

    @property
    def endpoint(self) -> tuple[str, int]:
        return self.url.host or "", self.url.port or 0


class Proxies:
    """Which proxy a URL goes through."""

    def __init__(self, by_scheme: Mapping[str, Proxy], environment: Mapping[str, str]):
        self._by_scheme, self._environment = by_scheme, dict(environment)
        self.endpoints = frozenset(proxy.endpoint for proxy in by_scheme.values())

    @classmethod
    def from_environment(cls) -> Self:
        """Raises ``ConfigError`` for a proxy of another kind."""
        found = request.getproxies_environment()
        schemes = [scheme for scheme in ("http", "https") if found.get(scheme)]
        return cls({name: Proxy.parse(f"{name}_proxy", found[name]) for name in schemes}, found)

    def for_url(self, url: URL) -> Proxy | None:
        proxy = self._by_scheme.get(url.scheme)
        bypass = request.proxy_bypass_environment  # type: ignore[attr-defined]  # not in typeshed
        return None if proxy is None or bypass(url.authority, self._environment) else proxy


def is_special_name(host: str) -> bool:
    """Whether ``host`` means something only where it is looked up."""
    name = host.rstrip(".").lower()
    return "." not in name or any(name.endswith(f".{special}") for special in SPECIAL_NAMES)
