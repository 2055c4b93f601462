"""Lists of domains: the built-in ones, and the user's in plain, hosts-file or Adblock form.

A list names domains exactly; each stands for itself and all its subdomains. Where several entries
fit a host the most special one decides, and an allow list wins a tie.

The forms, told apart line by line: ``example.com``; ``0.0.0.0 example.com``; ``||example.com^``
(and ``@@||example.com^``, which allows). Rules of Adblock lists that concern parts of pages, single
paths or requests made from other sites say nothing about a page itself and are passed over.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from web2gpt.errors import ConfigError, InputError
from web2gpt.io.shards import BadLine, read_lines
from web2gpt.web.urls import domain_and_parents, parse

ADBLOCK = re.compile(r"^(@@)?\|\|([^/^$*|]+)\^?\|?(?:\$(.*))?$")
WHOLE_PAGES = {"all", "document", "doc", "important"}
"""Options under which an Adblock rule still means the pages of a domain."""
PASSED_OVER = re.compile(r"^(?:[!#\[]|//|/.*/)|#[@?$%]*#|^[&?._~|/*=-]|\$|\^|\*|/|\?")
PART_OF_PAGES = re.compile(r"\S*#[@?$%]*#")  # such as example.com##.banner and its exceptions
NOT_IN_A_NAME = re.compile(r"[/:?@\\]")
NULL_ADDRESSES = {"0.0.0.0", "127.0.0.1", "::", "::1"}


@dataclass
class DomainLists:
    """Which hosts are left out: ``blocked`` maps a domain to the list that names it."""

    blocked: dict[str, str] = field(default_factory=dict)
    allowed: set[str] = field(default_factory=set)

    def listed_in(self, host: str) -> str | None:
        """The name of the list that leaves ``host`` out, or None if it stays."""
        for name in domain_and_parents(host):
            if name in self.allowed:
                return None
            if name in self.blocked:
                return self.blocked[name]
        return None


def built_in_names() -> list[str]:
    """The built-in lists, by theme."""
    folder = files(__package__).joinpath("lists")
    return sorted(file.name.removesuffix(".txt") for file in folder.iterdir())


def load_lists(without: Iterable[str], block: Iterable[Path], allow: Iterable[Path]) -> DomainLists:
    """The built-in lists save those named in ``without``, then the user's.

    Raises ``ConfigError`` for a theme that does not exist, ``InputError`` for a file that cannot
    be read.
    """
    themes, without = built_in_names(), set(without)
    if unknown := sorted(without - set(themes)):
        raise ConfigError(
            f"urls.without_lists: no built-in list {unknown[0]!r}; there are {', '.join(themes)}"
        )
    lists = DomainLists()
    for theme in themes:
        if theme not in without:
            text = files(__package__).joinpath("lists", f"{theme}.txt").read_text()
            lists.blocked |= dict.fromkeys(_plain_names(text), theme)
    for path in block:
        for name, is_allowed in _user_names(path):
            if is_allowed:
                lists.allowed.add(name)
            else:
                lists.blocked.setdefault(name, path.name)
    for path in allow:
        lists.allowed.update(name for name, _ in _user_names(path))
    return lists


def _plain_names(text: str) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def _user_names(path: Path) -> Iterator[tuple[str, bool]]:
    """Each domain of a user's list, and whether its line allows it. Lines that cannot be
    understood are passed over, and their number is told."""
    faults: list[int] = []
    for number, line in read_lines(path):
        if isinstance(line, BadLine):
            raise InputError(f"{path}: line {number} cannot be read ({line.reason}); mend the list")
        text = line.decode(errors="replace").strip()
        if not text:
            continue
        found = list(domains_in_line(text))
        if not found and not PASSED_OVER.search(text):
            faults.append(number)
        yield from found
    if faults:
        print(
            f"urls: {path}: {len(faults)} lines name no domain, the first is line {faults[0]}",
            file=sys.stderr,
        )


def domains_in_line(line: str) -> Iterator[tuple[str, bool]]:
    """The domains that a line names, each with whether it is allowed rather than blocked."""
    if match := ADBLOCK.match(line):
        exception, name, options = match.groups()
        if set(filter(None, (options or "").split(","))) <= WHOLE_PAGES and (host := _host(name)):
            yield host, bool(exception)
        return
    if line.startswith(("!", "[")) or PART_OF_PAGES.match(line):
        return
    words = line.partition("#")[0].split()
    if len(words) > 1 and words[0] in NULL_ADDRESSES:
        words = words[1:]
    elif len(words) > 1:
        return
    for word in words:
        if host := _host(word.removeprefix("*.").removeprefix(".")):
            yield host, False


def _host(name: str) -> str | None:
    """A domain in the form that hosts have in parsed URLs; None if it is none."""
    if "." not in name or NOT_IN_A_NAME.search(name):
        return None
    url = parse(f"http://{name}/")
    return url.host.rstrip(".") if url else None
