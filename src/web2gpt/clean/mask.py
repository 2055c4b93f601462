"""Replace e-mail and IP addresses, which may identify people.

E-mail addresses are dot-atoms of RFC 5322 before the @ and host names behind it; each is looked for
around its @ only, so that no text takes more than linear time. IP addresses are of version 4;
private, loopback and reserved ones are no one's and can be left.
"""

import ipaddress
import re
from collections.abc import Callable

from web2gpt.config.clean import Mask

MAX_LOCAL = 256  # characters before the @; RFC 5321 allows 64
ATOM = r"[A-Za-z0-9_!#$%&'*+/=?^`{|}~-]+"
LOCAL = re.compile(rf"\b{ATOM}(?:\.{ATOM})*\Z")
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
HOST = re.compile(rf"(?:{LABEL}\.)+{LABEL}")
OCTET = r"(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
IP = re.compile(rf"(?:{OCTET}\.){{3}}{OCTET}")


def masker(rules: Mask) -> Callable[[str], tuple[str, int]] | None:
    """Replaces what the rules say, and counts it; None if they say nothing."""
    if not (rules.emails or rules.ips):
        return None

    def mask(text: str) -> tuple[str, int]:
        emails = ips = 0
        if rules.emails and "@" in text:
            text, emails = _mask_emails(text, rules.email)
        if rules.ips:
            text, ips = _mask_ips(text, rules)
        return text, emails + ips

    return mask


def _mask_emails(text: str, replacement: str) -> tuple[str, int]:
    parts: list[str] = []
    done, before, at = 0, -1, text.find("@")
    while at >= 0:
        local = LOCAL.search(text, max(done, before + 1, at - MAX_LOCAL), at)
        host = HOST.match(text, at + 1) if local else None
        if local and host:
            parts += [text[done : local.start()], replacement]
            done = host.end()
        before, at = at, text.find("@", max(done, at + 1))
    return "".join((*parts, text[done:])), len(parts) // 2


def _mask_ips(text: str, rules: Mask) -> tuple[str, int]:
    count = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal count
        try:
            address = ipaddress.ip_address(found[0])
        except ValueError:  # zeros in front of a number
            return found[0]
        if rules.public_ips_only and not address.is_global:
            return found[0]
        count += 1
        return rules.ip

    return IP.sub(replace, text), count
