"""The two forms of a URL, kept apart, and the registered domain.

``parse`` gives the URL that is fetched: the WHATWG URL standard's serialization of what was given,
without the fragment, and nothing else that could change its meaning. ``duplicate_key`` gives a
looser form that only serves to find duplicates: URLs that differ by scheme, ``www.``, a trailing
slash, known tracking parameters or HTML-escaped ampersands share it.
"""

import re
from ipaddress import ip_address
from typing import NamedTuple

import can_ada
from tldextract import TLDExtract

MAX_LENGTH = 8_000  # characters; what RFC 9110, section 4.1, asks of all software
SPACE = re.compile(r"[\s\x00-\x1f\x7f]")
REGULAR = re.compile(
    r"https?://((?:[a-z0-9-]+\.)+[a-z]+)"
    r"(/[A-Za-z0-9_~!$&'()*+,;=:@/.-]*)"
    r"((?:\?[A-Za-z0-9_~!$&()*+,;=:@/?.%-]+)?)"
)
"""What most URLs look like. They are their own serialization already, if neither a name in Punycode
nor a dot segment is in them. Addresses, ports, percent signs in paths and the rest do not match."""
TRACKING = frozenset((
    "fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "yclid", "twclid",
    "ttclid", "igshid", "igsh", "li_fat_id", "epik", "s_kwcid", "mc_cid", "mc_eid", "mkt_tok",
    "vero_id", "vero_conv", "oly_anon_id", "oly_enc_id", "rb_clickid", "_hsenc", "_hsmi",
    "__hssc", "__hstc", "__hsfp", "hsctatracking", "_openstat", "_ga", "_gl", "srsltid",
    "ml_subscriber", "ml_subscriber_hash", "wickedid", "ref_src", "ref_url", "cmpid", "ncid",
    "ns_mchannel", "ns_source", "ns_campaign", "ns_linkname", "ns_fee", "spm",
    "__twitter_impression",
))  # fmt: skip
"""Parameters that say where a visitor came from and never which page is meant."""
TRACKING_PREFIXES = ("utm_", "pk_", "mtm_", "piwik_", "hsa_", "at_custom", "matomo_")

_suffixes = TLDExtract(suffix_list_urls=(), cache_dir=None)


class WebUrl(NamedTuple):
    """``url`` is the serialization, without the fragment; the rest are its parts.

    ``port`` is empty where the scheme's own is meant; ``query`` begins with its question mark.
    """

    url: str
    host: str
    port: str
    path: str
    query: str


def parse(given: str) -> WebUrl | None:
    """The http or https URL that ``given`` is, or None if it is none."""
    regular = REGULAR.fullmatch(given)
    if regular is not None and len(given) <= MAX_LENGTH:
        host, path, query = regular.groups()
        if "/." not in path and "xn--" not in host:
            return tuple.__new__(WebUrl, (given, host, "", path, query))  # the quickest way
    return _parse_any(given)


def _parse_any(given: str) -> WebUrl | None:
    """``parse`` by the standard's own algorithm, for URLs of every form."""
    if len(given) > MAX_LENGTH or SPACE.search(given):
        return None
    try:
        parsed = can_ada.parse(given)
    except ValueError:
        return None
    if parsed.protocol not in ("http:", "https:"):
        return None
    if parsed.has_hash():
        parsed.hash = ""
    return WebUrl(parsed.href, parsed.hostname, parsed.port, parsed.pathname, parsed.search)


def duplicate_key(url: WebUrl) -> str:
    """What two URLs of the same page share, as far as can be told without fetching."""
    _, host, port, path, query = url
    place = f"{host.removeprefix('www.')}:{port}" if port else host.removeprefix("www.")
    page = path.rstrip("/")
    return f"{place}{page}{_without_tracking(query)}" if query else place + page


def preference(url: WebUrl) -> int:
    """Rank among URLs with the same key, least first: https, then no slash at the path's end, then
    plain ampersands. What is still equal is decided by the least string."""
    address, _, _, path, query = url
    rank = 0 if address.startswith("https:") else 4
    if path.endswith("/") and path != "/":
        rank += 2
    if query and "&amp;" in query:
        rank += 1
    return rank


def _without_tracking(query: str) -> str:
    """``query`` with its question mark, if anything is left of it; order and values as given."""
    parameters = query[1:].replace("&amp;", "&").split("&")
    kept = [text for text in parameters if text and not is_tracking(text.partition("=")[0])]
    return f"?{'&'.join(kept)}" if kept else ""


def is_tracking(name: str) -> bool:
    """Whether a query parameter of this name only follows visitors."""
    name = name.lower()
    return name in TRACKING or name.startswith(TRACKING_PREFIXES)


def registered_domain(host: str) -> str:
    """The name that was registered under a public suffix: ``b.co.uk`` of ``a.b.co.uk``.

    The suffix list is the one bundled with tldextract, its private part left out. As the list's
    rules have it, an unknown top-level domain is itself a public suffix. An address, a single label
    or a bare suffix stands for itself.
    """
    found = _suffixes(host)
    if found.suffix:
        return f"{found.domain}.{found.suffix}" if found.domain else host
    if is_address(host):
        return host
    return ".".join(host.rstrip(".").split(".")[-2:])


def is_address(host: str) -> bool:
    """Whether the host of a parsed URL is an IPv4 or IPv6 address."""
    if host.startswith("["):
        return True
    if not host[-1:].isdigit():
        return False
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def domain_and_parents(host: str) -> list[str]:
    """``host`` and each name above it down to the last label, the most special first."""
    labels = host.rstrip(".").split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]
