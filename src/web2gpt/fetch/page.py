"""One URL of the list, from its first request to its outcome: robots, redirects, retries.

Every hop is checked like the first: scheme, robots.txt of its origin, the turn at its host, and
the address. The budget counts time on the network, not time spent waiting for a turn.
"""

import asyncio
import random
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin, urlsplit

import can_ada

from web2gpt.config.fetch import Fetch
from web2gpt.fetch.client import Client, Wanted
from web2gpt.fetch.directives import refused_by_page
from web2gpt.fetch.exchange import STATUS_MAY_PASS, Exchange, Failure
from web2gpt.fetch.hosts import Host, Hosts
from web2gpt.fetch.records import archive
from web2gpt.fetch.robots import REDIRECTS, TEXT, Robots
from web2gpt.fetch.urllist import ListedUrl

BEFORE_QUERY = re.compile(r"^[^?#]*")
REDIRECT = frozenset((301, 302, 303, 307, 308))
KEPT = "kept"


class Budget:
    """Seconds on the network that are left for one URL."""

    def __init__(self, seconds: float):
        self.left = seconds
        self.spent = 0.0

    @contextmanager
    def spend(self) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.spent += time.monotonic() - start
            self.left -= time.monotonic() - start


@dataclass(frozen=True)
class Outcome:
    """What became of a URL; ``outcome`` is ``kept`` or the reason why not."""

    url: str
    source: str
    outcome: str
    status: int | None
    final_url: str | None
    redirects: int
    content_type: str | None
    bytes: int
    milliseconds: int


@dataclass(frozen=True)
class Fetched:
    """An outcome and the WARC records that go with it."""

    outcome: Outcome
    records: bytes


class PageFetcher:
    """Fetches the URLs of a crawl; everything they share stands here."""

    def __init__(self, client: Client, settings: Fetch):
        self._client, self._settings = client, settings
        self.hosts = Hosts(settings)
        self._robots = Robots(self._get_robots, settings.user_agent)
        self._wanted = Wanted(
            frozenset(settings.content_types), settings.max_bytes, settings.max_wire_bytes
        )
        self._unwanted = frozenset(rule.lower() for rule in settings.page_rules)

    async def fetch(self, listed: ListedUrl) -> Fetched:
        """Fetch one URL; whatever happens to it is in the outcome."""
        budget, trail = Budget(self._settings.timeout), list[Exchange]()
        try:
            reason = await self._follow(canonical(listed.url), trail, budget)
            if reason == KEPT:
                reason = self._ask_page(trail)
        except Exception as error:  # noqa: BLE001 - what nobody foresaw costs this URL alone
            print(f"{listed.url}: {error!r}, counted as unexpected", file=sys.stderr, flush=True)
            reason, trail = "unexpected", []
        last = trail[-1] if trail else None
        outcome = Outcome(
            url=listed.url,
            source=listed.source,
            outcome=reason,
            status=(last.status or None) if last else None,
            final_url=last.url if last else None,
            redirects=max(0, len(trail) - 1),
            content_type=last.content_type if last else None,
            bytes=len(last.body) if last and reason == KEPT else 0,
            milliseconds=round(budget.spent * 1000),
        )
        return Fetched(outcome, archive(listed, trail, reason, self._settings.warc_level))

    async def _follow(self, url: str, trail: list[Exchange], budget: Budget) -> str:
        """Fetch ``url`` and where it leads, each answer onto ``trail``; the outcome."""
        for _ in range(self._settings.max_redirects + 1):
            refusal = await self._refusal(url)
            if refusal is not None:
                return refusal
            exchange = await self._persist(url, self._wanted, budget)
            trail.append(exchange)
            if exchange.status not in REDIRECT:
                return self._judge(exchange)
            following = redirect_target(exchange)
            if isinstance(following, Failure):
                return following.reason
            if any(following == hop.url for hop in trail):
                return "redirect_loop"
            url = following
        return "too_many_redirects"

    async def _refusal(self, url: str) -> str | None:
        """Why ``url`` must not be requested, if so."""
        rules, agent = await self._robots.rules(url), self._settings.user_agent
        if rules.failure is not None:
            return rules.failure.reason
        asked = min(rules.crawl_delay(agent), self._settings.max_delay)
        self._host(url).delay = max(self._settings.delay, asked)
        return None if rules.allow(url, agent) else "robots"

    def _judge(self, exchange: Exchange) -> str:
        if exchange.failure is not None:
            return exchange.failure.reason
        if exchange.status != 200:
            return f"http_{exchange.status}"
        return KEPT if self._wanted.takes(exchange.status, exchange.content_type) else "not_html"

    def _ask_page(self, trail: list[Exchange]) -> str:
        """``kept``, unless the page itself asks to be left out: then its body is not archived."""
        refused = refused_by_page(trail[-1], self._unwanted, self._settings.user_agent)
        if refused is None:
            return KEPT
        trail[-1] = replace(trail[-1], truncated="unspecified")
        return refused

    async def _persist(self, url: str, wanted: Wanted, budget: Budget) -> Exchange:
        """Request ``url``, again if the failure may pass and the budget allows."""
        for attempt in range(self._settings.retries + 1):
            async with self._host(url).turn():
                with budget.spend():
                    exchange = await self._client.get(url, wanted, max(budget.left, 0.001))
            may_pass = exchange.failure.may_pass if exchange.failure else False
            if not (may_pass or exchange.status in STATUS_MAY_PASS) or budget.left <= 0:
                break
            if attempt < self._settings.retries:
                await self._wait(url, exchange, attempt)
        return exchange

    async def _wait(self, url: str, exchange: Exchange, attempt: int) -> None:
        """Wait as long as the server asks, else exponentially longer with every attempt."""
        asked = retry_after(exchange)
        if asked is not None:
            self._host(url).pause(min(asked, self._settings.max_wait))
            return
        seconds = self._settings.backoff * 2**attempt * random.uniform(0.5, 1.5)
        await asyncio.sleep(min(seconds, self._settings.max_wait))

    async def _get_robots(self, url: str) -> list[Exchange]:
        budget, trail = Budget(self._settings.timeout), list[Exchange]()
        for _ in range(REDIRECTS + 1):
            trail.append(await self._persist(url, TEXT, budget))
            following = redirect_target(trail[-1]) if trail[-1].status in REDIRECT else None
            if not isinstance(following, str):
                break
            url = following
        return trail

    def _host(self, url: str) -> Host:
        return self.hosts[urlsplit(url).hostname or ""]


def canonical(url: str) -> str:
    """``url`` as the WHATWG standard writes it, without fragment and credentials.

    Raises ``ValueError`` if it is none.
    """
    parsed = can_ada.parse(url)
    parsed.hash = parsed.username = parsed.password = ""
    return str(parsed.href)


def redirect_target(exchange: Exchange) -> str | Failure:
    """Where a redirect leads, or why it leads nowhere."""
    location = exchange.header("location")
    if not location:
        return Failure("bad_redirect")
    try:
        url = canonical(urljoin(exchange.url, BEFORE_QUERY.sub(_slashes, location)))
    except ValueError:
        return Failure("bad_redirect")
    return url if url.startswith(("http://", "https://")) else Failure("refused_scheme")


def _slashes(place: re.Match[str]) -> str:
    """Backslashes as the standard and browsers read them in http URLs."""
    return place[0].replace("\\", "/")


def retry_after(exchange: Exchange) -> float | None:
    """Seconds that the server asks to wait, given as such or as a date."""
    value = exchange.header("retry-after")
    if value is None:
        return None
    if value.isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
