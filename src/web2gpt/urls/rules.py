"""The rules that a URL must pass, each with its name, in this order, first hit wins:

malformed  not an http or https URL in the WHATWG standard's eyes, or with spaces in it
short      fewer characters than ``min_length``
malformed  a host that cannot be public: a single label that is no address, a name that DNS cannot
           hold (RFC 1035: labels of 1 to 63 characters, 253 in all)
domain     on a list of domains, itself or a name above it
extension  the path ends in something that is not a page

Work that depends on the host alone is done once a host.
"""

from importlib.resources import files
from typing import NamedTuple

from web2gpt.urls.domain_lists import DomainLists
from web2gpt.web.urls import WebUrl, is_address, parse, registered_domain

HOSTS_REMEMBERED = 1 << 17


class Rejection(NamedTuple):
    """Why a URL is left out; ``figure`` is what the rule went by."""

    reason: str
    figure: str | int | None = None


Kept = tuple[WebUrl, str]
"""A URL that may be fetched, and the registered domain of its host."""


class Rules:
    """All rules but the last, ``duplicate``, which needs to see the whole list."""

    def __init__(self, min_length: int, lists: DomainLists):
        self._min_length = min_length
        self._lists = lists
        self._extensions = load_extensions()
        self._hosts: dict[str, str | Rejection] = {}

    def judge(self, given: str) -> Kept | Rejection:
        """Whether the URL ``given`` is kept."""
        url = parse(given)
        if url is None:
            return Rejection("malformed")
        if len(given) < self._min_length:
            return Rejection("short", len(given))
        _, host, _, path, _ = url
        domain = self._hosts.get(host) or self._judge_host(host)
        if isinstance(domain, Rejection):
            return domain
        if "." in path and (extension := extension_of(path)) in self._extensions:
            return Rejection("extension", extension)
        return url, domain

    def _judge_host(self, host: str) -> str | Rejection:
        """The registered domain of a host that may stay; remembered."""
        if len(self._hosts) >= HOSTS_REMEMBERED:
            self._hosts.clear()
        theme = self._lists.listed_in(host)
        if not is_address(host) and not _may_be_public(host):
            self._hosts[host] = Rejection("malformed", host)
        elif theme is not None:
            self._hosts[host] = Rejection("domain", theme)
        else:
            self._hosts[host] = registered_domain(host)
        return self._hosts[host]


def _may_be_public(host: str) -> bool:
    name = host.removesuffix(".")
    is_held = len(name) < 254 and all(0 < len(label) < 64 for label in name.split("."))
    return is_held and "." in name


def extension_of(path: str) -> str:
    """What follows the last dot of the path's last part, in lower case; empty if nothing does."""
    name = path[path.rfind("/") + 1 :]
    dot = name.rfind(".")
    return name[dot + 1 :].lower() if dot >= 0 else ""


def load_extensions() -> frozenset[str]:
    """The extensions that are left out."""
    text = files(__package__).joinpath("extensions.txt").read_text()
    return frozenset(word for line in text.splitlines() for word in line.partition("#")[0].split())
