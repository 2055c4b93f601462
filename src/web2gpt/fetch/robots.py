"""robots.txt, as RFC 9309 has it: fetched once an origin, obeyed before every request to it.

An answer of 4xx means no rules; one of 5xx, or 429, means that nothing may be fetched for now.
When the server cannot be reached at all nothing may be fetched either, and the URLs of that host
share the reason. Rules are parsed by Protego; what stands beyond 500 KiB is not read.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from protego import Protego

from web2gpt.fetch.client import Wanted
from web2gpt.fetch.exchange import Exchange, Failure

LIMIT = 500 << 10  # bytes: what RFC 9309 asks of a parser at least
TEXT = Wanted(frozenset(), max_bytes=LIMIT, max_wire_bytes=2 * LIMIT, start_suffices=True)
REDIRECTS = 5
KEPT = 1024  # origins whose rules are remembered

AGENT_LINE = re.compile(r"\s*user(?:-| ?)agent(?=[\s:]|$)[\s:]*(.*)", re.IGNORECASE)

Get = Callable[[str], Awaitable[list[Exchange]]]
"""Fetches a URL with redirects: every exchange on the way, the last one being the answer."""


@dataclass(frozen=True)
class Rules:
    """What an origin allows. ``failure`` is set if nothing may be fetched for want of rules."""

    parsed: Protego | None = None  # none: everything is allowed
    failure: Failure | None = None

    def allow(self, url: str, agent: str) -> bool:
        return self.parsed is None or bool(self.parsed.can_fetch(url, agent))

    def crawl_delay(self, agent: str) -> float:
        delay = self.parsed.crawl_delay(agent) if self.parsed is not None else None
        return float(delay or 0.0)


def only_for(agent: str, text: str) -> str:
    """``text`` with every group for other agents under one name, which is nobody's.

    The parser gives each agent of a group a copy of its rules, so a file that names thousands of
    both would stall the crawl for minutes.
    """
    return "\n".join(_agent_line(agent.lower(), line) for line in text.splitlines())


def _agent_line(agent: str, line: str) -> str:
    found = AGENT_LINE.match(line)
    if found is None:
        return line
    name = found[1].partition("#")[0].strip().lower()
    if name == "*":
        return "User-agent: *"
    name = name.replace("*", "")
    return f"User-agent: {name if name and name in agent else '!'}"


class Robots:
    """The rules of all origins of a crawl; each origin's file is fetched by whoever asks first."""

    def __init__(self, get: Get, agent: str):
        self._get, self._agent = get, agent
        self._rules: OrderedDict[str, asyncio.Task[Rules]] = OrderedDict()

    async def rules(self, url: str) -> Rules:
        """The rules for ``url``'s origin."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        task = self._rules.get(origin)
        if task is None:
            task = asyncio.create_task(self._fetch(f"{origin}/robots.txt"))
            self._rules[origin] = task
        self._rules.move_to_end(origin)
        while len(self._rules) > KEPT and next(iter(self._rules.values())).done():
            self._rules.popitem(last=False)
        return await asyncio.shield(task)

    async def _fetch(self, url: str) -> Rules:
        answer = (await self._get(url))[-1]
        if 200 <= answer.status < 300 and (answer.body or answer.failure is None):
            text = answer.body.decode("utf-8-sig", "replace")
            return Rules(Protego.parse(only_for(self._agent, text)))
        if 300 <= answer.status < 500 and answer.status != 429:
            return Rules()
        if answer.status == 0 and answer.failure is not None:
            return Rules(failure=answer.failure)
        return Rules(failure=Failure("robots_unreachable"))
